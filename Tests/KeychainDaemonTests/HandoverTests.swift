// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

@testable import keychaind

/// A keychain in a directory of its user, and keychaind as a process of its own.
struct Handover {
    let home: String
    let service: SpawnedService

    static func with(_ body: (Handover) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            try FileManager.default.createDirectory(
                atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            let handover = Handover(home: home, service: try SpawnedService(adopting: false))
            defer { handover.engine().forgetKeys() }
            try body(handover)
        }
    }

    var connector: DaemonClient.Connector { DaemonClient.connector(toSocketAt: service.path) }

    /// The user's directory of keychaind.
    var kept: String { "\(service.directory.path)/keychains/\(CurrentProcess.effectiveUserID)" }

    /// The number of files of the user that open a keychain.
    var keyFileCount: Int {
        get throws { try FileManager.default.subpathsOfDirectory(atPath: home).count { $0.contains(".key") && !$0.hasSuffix(".kept") } }
    }

    /// The keychains that keychaind has set aside.
    var asideCount: Int {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: service.directory.path + "/keychains").count { $0.contains(".aside-") }
        }
    }

    func engine() -> LocalKeychain { LocalKeychain(home: home) { $0.useTestPolicy(in: home) } }

    /// A program of the user that starts.
    func program() -> UserKeychain { UserKeychain(engine(), connector: connector) }

    func takeBack(
        requiresSignpost: Bool = true, _ reach: (HandoverPoint) -> Void = { _ in }
    ) throws(KeychainFailure) -> HandoverReport {
        try engine().takeBack(ofUser: CurrentProcess.effectiveUserID, from: connection(), requiresSignpost: requiresSignpost, reach: reach)
    }

    func connection() throws(KeychainFailure) -> DaemonHandover {
        try DaemonHandover(DaemonClient(entitlements: Entitlements(applicationIdentifier: ""), connector: connector))
    }

    /// Runs the handover in a process of its own, which is killed at a point.
    func run(_ direction: String, killedAt point: HandoverPoint? = nil) throws -> ChildProcess.Ending {
        try ChildProcess.run(
            try BuiltProgram.path(of: "KeychainTestChild"), ["hand-over", home, service.path, direction, point?.rawValue ?? "none"]
        ).ending
    }

    static func rows(of keychain: LocalKeychain) throws -> [HandedOverRow] {
        var rows: [HandedOverRow] = []
        try keychain.forEachHandedOverRow { rows.append($0) }
        return rows
    }
}

extension Keychain {
    func items() throws -> [KeychainItem] {
        try copyMatching(
            MatchRequest(
                query: ItemQuery(itemClass: .genericPassword), limit: nil, includesSecrets: false,
                authentication: Authentication(interaction: .skippingItems)))
    }
}

@Suite("The handover of a keychain to keychaind, and back", .blocking)
struct HandoverTests {
    @Test("Everything moves: locked items, constraints, tombstones, the quarantine, references, dates, the passcode")
    func everything() throws {
        try Handover.with { handover in
            let engine = handover.engine()
            try engine.addItem("damaged", "1")
            engine.close()
            try RawDatabase(handover.home + "/keychain.db").execute("UPDATE items SET sealed_attributes = zeroblob(40)")
            // The state is that of the damaged row, whose tag is unchanged.
            try engine.addItem("damaged", "2")
            try engine.set("swordfish")
            for accessibility in ItemAccessibility.allCases {
                try engine.addItem("\(accessibility)", "secret of \(accessibility)", accessibility)
            }
            try engine.addItem("guarded", "3", protectedBy: AccessControl(.whenUnlocked, constraint: .userPresence))
            try engine.addItem("large", String(repeating: "x", count: 3 << 20))
            let shared = ItemAttributes([.account: .string("shared"), .synchronizable: .number(1), .generic: .data(Data([0, 255]))])
            _ = try engine.add(AddRequest(itemClass: .genericPassword, attributes: shared, secret: Data([1])))
            var query = ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("shared")]))
            query.synchronizability = .either
            try engine.delete(DeleteRequest(query: query))
            let items = try engine.items()
            try engine.lock(.everything)
            let rows = try Handover.rows(of: engine)
            #expect(rows.count { $0.row.header.isTombstone } == 1)
            #expect(rows.count { $0.quarantineSeconds != nil } == 1)
            engine.close()

            let report = try engine.handOver(to: handover.connector)
            #expect(report.rowCount == rows.count)
            #expect(try FileManager.default.contentsOfDirectory(atPath: handover.home).sorted() == ["keychain.db", "keys"])
            #expect(try handover.keyFileCount == 0)
            let program = handover.program()
            #expect(try program.sessionStatus().isPasscodeSet)
            try program.unlock(try Passcode(text: "swordfish"), autoLock: .never)
            let moved = try program.items()
            #expect(moved.map(\.reference) == items.map(\.reference))
            #expect(moved.map(\.attributes) == items.map(\.attributes))
            for accessibility in ItemAccessibility.allCases {
                #expect(try program.value(of: "\(accessibility)") == "secret of \(accessibility)")
            }

            #expect(try handover.takeBack().rowCount == rows.count)
            #expect(!FileManager.default.fileExists(atPath: handover.kept))
            let released = handover.engine()
            #expect(try Handover.rows(of: released) == rows)
            #expect(try released.sessionStatus().state != .unlocked)
            try released.unlock(with: "swordfish")
            #expect(try released.secret(of: "large").utf8.count == 3 << 20)
            #expect(try released.verify(purgingQuarantine: false).findings.isEmpty)
            // The program that has used keychaind uses the file again.
            #expect(try program.value(of: "damaged") == "2")
            try program.set("after", "4")
            #expect(try released.items().count == items.count + 1)
        }
    }

    @Test("A keychain that does not exist yet is created, and adopted")
    func nothing() throws {
        try Handover.with { handover in
            #expect(try handover.engine().handOver(to: handover.connector).rowCount == 0)
            try handover.program().set("a", "1")
            #expect(try handover.takeBack().rowCount == 1)
            #expect(try handover.program().value(of: "a") == "1")
        }
    }

    @Test("A process that is killed during an adoption leaves the file or keychaind in charge", arguments: HandoverPoint.allCases)
    func killedAdoption(at point: HandoverPoint) throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            #expect(try handover.run("adopt", killedAt: point) == .killed(bySignal: SIGKILL))
            let isPlaced = point == .placed || point == .finished
            // The change is in the file, or in keychaind.
            let program = handover.program()
            try program.set("b", "2")
            #expect(try (program.keptKeychain() != nil) == isPlaced)
            if isPlaced {
                try handover.engine().finishHandover(of: try storeID(handover), to: handover.connector)
                #expect(try handover.keyFileCount == 0)
            } else {
                #expect(try handover.run("adopt") == .exited(0))
            }
            #expect(try handover.asideCount == (point == .prepared ? 1 : 0))
            #expect(try handover.program().items().count == 2)
            #expect(try handover.program().value(of: "a") == "1")
            #expect(try handover.program().value(of: "b") == "2")
        }
    }

    @Test(
        "A process that is killed during a release leaves keychaind or the file in charge, or a release to repeat",
        arguments: HandoverPoint.allCases)
    func killedRelease(at point: HandoverPoint) throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            #expect(try handover.run("adopt") == .exited(0))
            #expect(try handover.run("release", killedAt: point) == .killed(bySignal: SIGKILL))
            let program = handover.program()
            switch point {
            case .prepared, .rowsCopied:
                // Neither is in charge: an acknowledged change could be lost, and what a program stores could be read by others.
                #expect(throws: KeychainFailure(.notAvailable, "")) { try program.set("b", "2") }
            case .placed, .finished:
                try program.set("b", "2")
                #expect(try program.keptKeychain() == nil)
            }
            if point != .finished { #expect(try handover.run("release") == .exited(0)) }
            #expect(!FileManager.default.fileExists(atPath: handover.kept))
            // The file has a change that keychaind does not know, so what keychaind has is not deleted.
            #expect(try handover.asideCount == (point == .placed ? 1 : 0))
            #expect(try handover.program().keptKeychain() == nil)
            #expect(try handover.program().value(of: "a") == "1")
            #expect(try handover.program().items().count == (point == .placed || point == .finished ? 2 : 1))
            #expect(try handover.keyFileCount == 1)
            #expect(try !FileManager.default.contentsOfDirectory(atPath: handover.home).contains { $0.hasPrefix(".") })
        }
    }

    @Test("A keychaind that is killed during an adoption leaves the file or itself in charge", arguments: HandoverPoint.allCases)
    func killedService(at point: HandoverPoint) throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            let isKilled = Mutex(false)
            do throws(KeychainFailure) {
                _ = try handover.engine().handOver(to: handover.connector) { reached in
                    guard reached == point else { return }
                    isKilled.withLock { $0 = (try? handover.service.restart(with: SIGKILL)) == .killed(bySignal: SIGKILL) }
                }
                #expect(point != .rowsCopied)
            } catch {
                #expect(point == .rowsCopied)
            }
            #expect(isKilled.withLock { $0 })
            #expect(try handover.program().value(of: "a") == "1")
            if point == .rowsCopied { #expect(try handover.run("adopt") == .exited(0)) }
            #expect(try handover.program().keptKeychain() != nil)
            #expect(try handover.program().value(of: "a") == "1")
        }
    }

    @Test("Nothing that programs were told is stored gets lost while the keychain moves there and back")
    func writers() throws {
        let directory = try TemporaryDirectory()
        let service = try SpawnedService(adopting: false)
        let home = directory.path + "/home"
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let handover = Handover(home: home, service: service)
        let connector = handover.connector
        let isEnding = Mutex(false)
        let acknowledgedCount = Mutex(0)
        // Each writes some accounts again and again, and returns the last value of each that was acknowledged.
        let writers = (0..<4).map { writer in
            { @Sendable () -> [String: Int] in
                let program = UserKeychain(LocalKeychain(home: home), connector: connector)
                var acknowledged: [String: Int] = [:]
                var number = 0
                while !isEnding.withLock({ $0 }) {
                    number += 1
                    let account = "\(writer)-\(number % 20)"
                    // While the keychain is handed over, a call may fail.
                    guard (try? program.set(account, "\(number)")) != nil else { continue }
                    acknowledged[account] = number
                    acknowledgedCount.withLock { $0 += 1 }
                }
                return acknowledged
            }
        }
        let threads = StartedThreads(writers)
        defer { isEnding.withLock { $0 = true } }
        for direction in ["adopt", "release", "adopt"] {
            let before = acknowledgedCount.withLock { $0 }
            #expect(waitUntil { acknowledgedCount.withLock { $0 } > before + 40 })
            // Another program may be writing for longer than the process waits.
            #expect(try waitUntil { try handover.run(direction) == .exited(0) })
        }
        isEnding.withLock { $0 = true }
        let program = handover.program()
        for (account, value) in try #require(threads.outcomes()).flatMap(\.self) {
            let present = Int(try program.value(of: account))
            #expect(present.map { $0 >= value } == true, "\(account)")
        }
        #expect(try program.keptKeychain() != nil)
    }

    @Test("A keychain that synchronizes, a second one, and a damaged one are refused, and stay as they are")
    func refusals() throws {
        try Handover.with { handover in
            let engine = handover.engine()
            try engine.addItem("a", "1")
            try engine.startSynchronizing()
            #expect(throws: KeychainFailure(.unimplemented, "")) { try engine.handOver(to: handover.connector) }
            try engine.stopSynchronizing()
            _ = try engine.handOver(to: handover.connector)
            let other = LocalKeychain(home: handover.home + "/other")
            try other.addItem("a", "2")
            #expect(throws: KeychainFailure(.duplicateItem, "")) { try other.handOver(to: handover.connector) }
            #expect(try other.secret(of: "a") == "2")
            // Its signpost is not that of the keychain that keychaind keeps.
            let client = DaemonClient(entitlements: Entitlements(applicationIdentifier: ""), connector: handover.connector)
            #expect(throws: KeychainFailure(.duplicateItem, "")) {
                try other.takeBack(ofUser: CurrentProcess.effectiveUserID, from: DaemonHandover(client))
            }
            #expect(try handover.program().value(of: "a") == "1")
            other.close()
            try RawDatabase(handover.home + "/other/keychain.db").execute("UPDATE items SET sealed_secret = zeroblob(40)")
            let damaged = failure { _ = try other.handOver(to: handover.connector) }
            #expect(damaged?.isDamage == true)
        }
    }

    @Test("Steps of a handover in another order, and a keybag that is not authentic, are refused")
    func order() throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            let keys = try handover.engine().keysForHandover()
            let client = DaemonClient(entitlements: Entitlements(applicationIdentifier: ""), connector: handover.connector)
            let connection = try DaemonHandover(client)
            #expect(throws: KeychainFailure(.parameter, "")) { try connection.insert([]) }
            #expect(throws: KeychainFailure(.parameter, "")) { try connection.prepareAdoption() }
            #expect(throws: KeychainFailure(.parameter, "")) { try connection.prepareRelease() }
            #expect(throws: KeychainFailure(.parameter, "")) { try connection.rows() }
            var keybag = keys.keybag
            keybag[keybag.count / 2] ^= 1
            #expect(throws: KeychainFailure(.decode, "")) {
                try connection.beginAdoption(
                    of: KeychainKeys(
                        storeID: keys.storeID, keybag: keybag, keybagGeneration: keys.keybagGeneration, deviceSecret: keys.deviceSecret))
            }
            try connection.beginAdoption(of: keys)
            #expect(throws: KeychainFailure(.parameter, "")) { try connection.finishAdoption() }
            #expect(throws: KeychainFailure(.parameter, "")) { try connection.finishRelease() }
            // Another connection of the user cannot begin meanwhile, and nothing was adopted.
            let other = try DaemonHandover(client)
            #expect(throws: KeychainFailure(.notAvailable, "")) { try other.beginAdoption(of: keys) }
            #expect(try other.keptKeychain().0 == .incomplete)
            #expect(throws: KeychainFailure(.notAvailable, "")) { try service(handover, keys.storeID).sessionStatus() }
        }
    }

    /// A program whose signpost names this store.
    private func service(_ handover: Handover, _ storeID: StoreID) -> DaemonKeychain {
        DaemonKeychain(
            DaemonClient(entitlements: Entitlements(applicationIdentifier: "app"), storeID: storeID, connector: handover.connector))
    }

    private func storeID(_ handover: Handover) throws -> StoreID {
        guard case .keptByDaemon(let storeID)? = failure({ _ = try handover.engine().storeID() })?.cause
        else {
            throw CocoaError(.fileNoSuchFile)
        }
        return storeID
    }
}
