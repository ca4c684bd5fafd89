// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainTestSupport

/// One operation of the workload.
package enum WorkloadOperation: Sendable {
    case set(WorkloadItem, to: String)
    case remove(WorkloadItem)
    case removeAll(WorkloadValet)
    case migrate(from: WorkloadValet, to: WorkloadValet, removingOriginals: Bool)
    case setPasscode(String)
    case changePasscode(from: String, to: String, rotatingKeys: Bool)
    case removePasscode(String)
    /// Closes the keychain, which empties the -wal file, and opens it again.
    case reopen
    /// Turns synchronization on, and adds all items to the ledger.
    case startSynchronizing
    /// Brings the ledger up to date, as the agent does in each round.
    case synchronize
}

/// The valets of the workload, named as in their items' services.
package enum WorkloadValet: String, CaseIterable, Sendable {
    case everyday, afterFirstUnlock, former
    /// Its items are deleted with the passcode.
    case withPasscode
}

/// The valet and key of a value.
package struct WorkloadItem: Hashable, Sendable, CustomStringConvertible {
    package let valet: WorkloadValet
    package let key: String

    package init(valet: WorkloadValet, key: String) {
        self.valet = valet
        self.key = key
    }

    package var description: String { "\(valet.rawValue)/\(key)" }
}

/// The operations of the workload, which the seed determines.
package struct WorkloadPlan: Sendable {
    package let operations: [WorkloadOperation]
    /// Every passcode that is set at some time.
    package let passcodes: [String]

    /// The length of a run.
    package enum Size: String, CaseIterable, Sendable {
        /// Without large values, so that no checkpoint occurs during the work.
        case small
        case medium
        case large

        var itemOperationCount: Int {
            switch self {
            case .small: 2
            case .medium: 4
            case .large: 9
            }
        }
    }

    /// Creates a plan with every kind of operation.
    ///
    /// `synchronizes`: the store records changes from its second operation on.
    package init(seed: UInt64, size: Size, synchronizes: Bool = false) {
        let itemOperationCount = size.itemOperationCount
        var maker = Maker(generator: SeededGenerator(seed: seed))
        let passcodes = (1...2).map { "passcode \($0) of \(seed % 1_000_000)" }
        // Creates the keychain.
        maker.setSomething()
        if synchronizes { maker.append(.startSynchronizing) }
        for _ in 0..<itemOperationCount { maker.changeSomething([.everyday, .afterFirstUnlock, .former]) }
        maker.append(.setPasscode(passcodes[0]))
        maker.set(WorkloadItem(valet: .withPasscode, key: "bound"))
        for _ in 0..<itemOperationCount { maker.changeSomething([.everyday, .afterFirstUnlock, .withPasscode]) }
        maker.append(.reopen)
        if synchronizes { maker.append(.synchronize) }
        maker.append(.changePasscode(from: passcodes[0], to: passcodes[1], rotatingKeys: maker.flip()))
        for _ in 0..<2 { maker.set(WorkloadItem(valet: .former, key: "key \(maker.number(below: 4))")) }
        maker.append(.removeAll(.afterFirstUnlock))
        maker.append(.migrate(from: .former, to: .afterFirstUnlock, removingOriginals: maker.flip()))
        // Enough for a checkpoint during the work.
        if size != .small { for _ in 0..<2 { maker.setLarge() } }
        maker.append(.removePasscode(passcodes[1]))
        maker.append(.reopen)
        for _ in 0..<itemOperationCount { maker.changeSomething([.everyday, .afterFirstUnlock, .former]) }
        operations = maker.operations
        self.passcodes = passcodes
    }

    package init(operations: [WorkloadOperation]) {
        self.operations = operations
        passcodes = []
    }

    private struct Maker {
        var generator: SeededGenerator
        var world = KeychainContents()
        var operations: [WorkloadOperation] = []

        mutating func append(_ operation: WorkloadOperation) {
            operations.append(operation)
            world = world.after(operation)
        }

        mutating func number(below limit: Int) -> Int { Int.random(in: 0..<limit, using: &generator) }

        mutating func flip() -> Bool { Bool.random(using: &generator) }

        mutating func setSomething() { set(WorkloadItem(valet: .everyday, key: "key \(number(below: 5))")) }

        mutating func set(_ item: WorkloadItem) {
            // Mostly of the size of passwords and tokens; sometimes of several pages.
            let byteCount = number(below: 6) == 0 ? number(below: 20_000) : 8 + number(below: 200)
            append(.set(item, to: value(byteCount: byteCount)))
        }

        mutating func setLarge() {
            let item = WorkloadItem(valet: .everyday, key: "large \(number(below: 2))")
            append(.set(item, to: value(byteCount: 440_000 + number(below: 60_000))))
        }

        /// Changes an item; overwrites more often than it adds.
        mutating func changeSomething(_ valets: [WorkloadValet]) {
            let item = WorkloadItem(valet: valets[number(below: valets.count)], key: "key \(number(below: 4))")
            if world.items[item.description] != nil, number(below: 4) == 0 {
                append(.remove(item))
            } else {
                set(item)
            }
        }

        /// Makes a unique value.
        private mutating func value(byteCount: Int) -> String {
            let head = "value \(operations.count): "
            let letters = Array("abcdefghijklmnopqrstuvwxyz234567")
            return head + String((0..<byteCount).map { _ in letters[Int(generator.next() & 31)] })
        }
    }
}

/// The directories in which a workload is recorded and its images are examined.
package struct WorkloadDirectories {
    private let directory: String
    /// The recorded root.
    ///
    /// Images are examined at the same path, because a key file contains the path of its store.
    package var disk: String { directory + "/disk" }
    package var home: String { disk + "/new/home" }
    package var log: String { directory + "/log" }

    /// Uses an existing directory.
    package init(_ directory: String) throws {
        self.directory = directory
        try fill()
    }

    /// Recreates the directories of an earlier run, whose recorded root was `disk`.
    init(withDisk disk: String) throws {
        directory = URL(filePath: disk).deletingLastPathComponent().path
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try fill()
    }

    func remove() { try? FileManager.default.removeItem(atPath: directory) }

    private func fill() throws {
        try FileManager.default.createDirectory(
            atPath: disk, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }
}
