// SPDX-License-Identifier: Apache-2.0

/// The contents of a keychain: its values, and its passcode.
package struct KeychainContents: Hashable, Sendable {
    /// The digests of the values by `valet/key`: thousands of these are in memory.
    package private(set) var items: [String: String] = [:]
    package var passcode: String?

    package init(items: [String: String] = [:], passcode: String? = nil) {
        self.passcode = passcode
        for (name, value) in items { set(name, to: value) }
    }

    /// Returns the contents after the operation.
    func after(_ operation: WorkloadOperation) -> KeychainContents {
        var world = self
        switch operation {
        case .set(let item, let value): world.set(item.description, to: value)
        case .remove(let item): world.items[item.description] = nil
        case .removeAll(let valet): world.items = items.filter { !$0.key.hasPrefix(valet.rawValue + "/") }
        case .migrate(let source, let destination, let removesOriginals):
            for key in keys(in: source) {
                world.items["\(destination.rawValue)/\(key)"] = items["\(source.rawValue)/\(key)"]
                if removesOriginals { world.items["\(source.rawValue)/\(key)"] = nil }
            }
        case .setPasscode(let passcode), .changePasscode(_, let passcode, _): world.passcode = passcode
        case .removePasscode:
            world = after(.removeAll(.withPasscode))
            world.passcode = nil
        case .reopen, .startSynchronizing, .synchronize: break
        }
        return world
    }

    /// Returns the possible contents during the operation.
    ///
    /// A migration has several steps: it copies every value, and then removes the originals.
    func during(_ operation: WorkloadOperation) -> Set<KeychainContents> {
        guard case .migrate(let source, let destination, let removesOriginals) = operation else { return [self, after(operation)] }
        let keys = keys(in: source)
        let copied = after(.migrate(from: source, to: destination, removingOriginals: false))
        var worlds: Set<KeychainContents> = [self, copied]
        for chosen in 0..<(1 << keys.count) {
            var (copying, removing) = (self, copied)
            for (index, key) in keys.enumerated() where chosen >> index & 1 == 1 {
                copying.items["\(destination.rawValue)/\(key)"] = items["\(source.rawValue)/\(key)"]
                removing.items["\(source.rawValue)/\(key)"] = nil
            }
            worlds.insert(copying)
            if removesOriginals { worlds.insert(removing) }
        }
        return worlds
    }

    func keys(in valet: WorkloadValet) -> [String] {
        items.keys.filter { $0.hasPrefix(valet.rawValue + "/") }.map { String($0.dropFirst(valet.rawValue.count + 1)) }.sorted()
    }

    mutating func set(_ name: String, to value: String) { items[name] = Self.brief(value) }

    /// Returns a digest that is unique within the process.
    private static func brief(_ value: String) -> String {
        var hasher = Hasher()
        hasher.combine(value)
        return "\(value.prefix(20))… of \(value.utf8.count) bytes, \(hasher.finalize())"
    }

    /// Describes the differences.
    package func difference(from other: KeychainContents) -> String {
        var words: [String] = []
        for key in Set(items.keys).union(other.items.keys).sorted() where items[key] != other.items[key] {
            words.append("\(key): \(items[key] ?? "absent") instead of \(other.items[key] ?? "absent")")
        }
        if passcode != other.passcode { words.append("passcode: \(passcode ?? "none") instead of \(other.passcode ?? "none")") }
        return words.joined(separator: "; ")
    }
}

/// The allowed states after a power cut, given the acknowledgements until then.
package struct PowerCutExpectation: Sendable {
    package enum Failure: Error {
        case unknownMark(String)
    }

    private let operations: [WorkloadOperation]
    /// The allowed states; nil for no keychain.
    package private(set) var worlds: Set<KeychainContents?> = [nil]
    package private(set) var lastMark = "nothing begun"

    package init(_ plan: WorkloadPlan) {
        operations = plan.operations
    }

    /// Applies a mark of the workload: `begin 7`, `acknowledged 7`, `failed 7 -36`.
    package mutating func apply(mark: String) throws {
        let words = mark.split(separator: " ")
        guard words.count >= 2, let index = Int(words[1]), operations.indices.contains(index) else { throw Failure.unknownMark(mark) }
        let operation = operations[index]
        switch words[0] {
        case "begin":
            before = worlds
            worlds = Set(worlds.flatMap { Self.during(operation, $0) })
        case "acknowledged": worlds = Set(before.map { Self.after(operation, $0) })
        // The operation may have been done, in part or completely: the states that were possible during it remain.
        case "failed": break
        default: throw Failure.unknownMark(mark)
        }
        lastMark = mark
    }

    /// The allowed states when the current operation began.
    private var before: Set<KeychainContents?> = []

    private static func after(_ operation: WorkloadOperation, _ world: KeychainContents?) -> KeychainContents? {
        if let world { return world.after(operation) }
        // Removing and opening do not create a keychain.
        switch operation {
        case .remove, .removeAll, .reopen: return nil
        default: return KeychainContents().after(operation)
        }
    }

    private static func during(_ operation: WorkloadOperation, _ world: KeychainContents?) -> Set<KeychainContents?> {
        // A new keychain is empty at first.
        guard let world else { return Set([nil] + KeychainContents().during(operation).map { Optional($0) }) }
        return Set(world.during(operation).map { Optional($0) })
    }

    /// Describes why the state is not allowed, or returns nil if it is allowed.
    package func complaint(about found: ExaminedKeychain) -> String? {
        switch found {
        case .unusable(let reason): return reason
        case .absent:
            guard !worlds.contains(nil) else { return nil }
            return "there is no keychain, and there was one"
        case .world(let world):
            guard !worlds.contains(world) else { return nil }
            let differences = worlds.map { $0.map { world.difference(from: $0) } ?? "a keychain instead of none" }
            return "found: " + (differences.min { $0.count < $1.count } ?? "nothing was expected")
        }
    }
}
