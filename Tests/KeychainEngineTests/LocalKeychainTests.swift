// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import KeychainTesting
import Synchronization
import Testing

@Suite("The keychain in a file")
struct LocalKeychainTests {
    @Test("The first write creates a store and a key file, in directories accessible only to their owner")
    func made() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/made/on/the/way"
            let keychain = LocalKeychain(home: home)
            try keychain.addItem("account", "secret")
            let id = try #require(try keychain.report().store).id
            let names = try FileManager.default.subpathsOfDirectory(atPath: home).filter { !$0.hasPrefix("keychain.db-") }
            let anchor = KeychainConfiguration(home: home).anchorPaths(for: id)[0]
            #expect(
                names.sorted().map { home + "/" + $0 } == [
                    home + "/keychain.db", home + "/keys", anchor, "\(home)/keys/\(id.hexadecimal).key",
                ])
            let modes = [
                directory + "/made": 0o700, home: 0o700, home + "/keys": 0o700, home + "/keychain.db": 0o600,
                "\(home)/keys/\(id.hexadecimal).key": 0o600, anchor: 0o600,
            ]
            for (path, mode) in modes {
                #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == mode, "\(path)")
            }
        }
    }

    @Test("One instance reads, updates and deletes the items of another")
    func reopened() throws {
        try withTemporaryDirectory { directory in
            try LocalKeychain(home: directory + "/home").addItem("account", "secret")
            #expect(try LocalKeychain(home: directory + "/home").secret(of: "account") == "secret")
            try LocalKeychain(home: directory + "/home").updateItem("account", to: "another")
            #expect(try LocalKeychain(home: directory + "/home").secret(of: "account") == "another")
            try LocalKeychain(home: directory + "/home").deleteItem("account")
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try LocalKeychain(home: directory + "/home").secret(of: "account") }
        }
    }

    @Test("Two open instances see each other's writes")
    func shared() throws {
        try withTemporaryDirectory { directory in
            let (one, other) = (LocalKeychain(home: directory + "/home"), LocalKeychain(home: directory + "/home"))
            try one.addItem("from one", "1")
            try other.addItem("from other", "2")
            #expect(try other.secret(of: "from one") == "1")
            #expect(try one.secret(of: "from other") == "2")
            #expect(throws: KeychainFailure(.duplicateItem, "")) { try one.addItem("from other", "3") }
        }
    }

    @Test("The directory of key files may be anywhere, and can contain the keys of several keychains")
    func sharedKeyDirectory() throws {
        try withTemporaryDirectory { directory in
            let homes = ["one", "two", "three"].map { directory + "/" + $0 }
            let keychain = { (home: String) in LocalKeychain(home: home) { $0.keyDirectory = directory + "/state/keychain" } }
            for home in homes { try keychain(home).addItem("account", home) }
            for home in homes { #expect(try keychain(home).secret(of: "account") == home) }
            let names = try FileManager.default.contentsOfDirectory(atPath: directory + "/state/keychain")
            #expect(names.count { $0.hasSuffix(".key") } == 3 && names.count { $0.hasSuffix(".anchor") } == 3)
        }
    }

    @Test("A call that the entitlements forbid creates no keychain")
    func forbidden() throws {
        try withTemporaryDirectory { directory throws in
            let keychain = LocalKeychain(home: directory + "/home")
            let attributes = ItemAttributes([.account: .string("account"), .accessGroup: .string("foreign")])
            #expect(throws: KeychainFailure(.missingEntitlement, "")) {
                try keychain.add(AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data("secret".utf8)))
            }
            let query = ItemQuery(itemClass: .genericPassword, attributes: attributes)
            #expect(throws: KeychainFailure(.missingEntitlement, "")) { try keychain.copyMatching(MatchRequest(query: query)) }
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    @Test("An item that cannot be stored creates no keychain")
    func refused() throws {
        try withTemporaryDirectory { directory throws in
            let keychain = LocalKeychain(home: directory + "/home")
            let constrained = AccessControl(.whenUnlocked, constraint: .userPresence)
            let unreadable = AccessControl(.whenUnlocked, allowsPrivateKeyUsageOnly: true)
            let unavailable = AccessControl(.whenUnlocked, constraint: .biometryAny)
            for (request, status) in [
                (AddRequest(itemClass: .genericPassword, accessControl: constrained), KeychainStatus.authFailed),
                (AddRequest(itemClass: .genericPassword, accessControl: AccessControl(.whenPasscodeSetThisDeviceOnly)), .authFailed),
                (AddRequest(itemClass: .genericPassword, accessControl: unavailable), .authFailed),
                (AddRequest(itemClass: .genericPassword, accessControl: unreadable), .parameter),
                (AddRequest(itemClass: .key, secret: Data("secret".utf8)), .unimplemented),
                (AddRequest(itemClass: .genericPassword, attributes: ItemAttributes([.tokenID: .string("token")])), .unimplemented),
            ] {
                #expect(throws: KeychainFailure(status, "")) { try keychain.add(request) }
            }
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    @Test("Threads that first use it concurrently create one keychain")
    func firstUseAtOnce() async throws {
        let directory = try TemporaryDirectory()
        let keychain = LocalKeychain(home: directory.path + "/home")
        try await withThrowingTaskGroup { group in
            for number in 0..<16 { group.addTask { try keychain.addItem("account \(number)", "secret \(number)") } }
            try await group.waitForAll()
        }
        for number in 0..<16 { #expect(try keychain.secret(of: "account \(number)") == "secret \(number)") }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path + "/home/keys").count { $0.hasSuffix(".key") } == 1)
    }

    @Test("Sixteen threads read while one writes, and each finds a complete value")
    func readers() async throws {
        let directory = try TemporaryDirectory()
        let keychain = LocalKeychain(home: directory.path + "/home")
        for number in 0..<8 { try keychain.addItem("account \(number)", "0") }
        let readers = (0..<16).map { thread in
            { @Sendable in
                (0..<50).allSatisfy { round in (try? keychain.secret(of: "account \((thread + round) % 8)")).flatMap { Int($0) } != nil }
            }
        }
        let writer = { @Sendable in (1...50).allSatisfy { (try? keychain.updateItem("account \($0 % 8)", to: "\($0)")) != nil } }
        #expect(await onThreads(readers + [writer]).allSatisfy(\.self))
    }

    @Test("A store removed while open is not written to, and no new one is created")
    func removedWhileOpen() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let keychain = LocalKeychain(home: home)
            try keychain.addItem("kept", "secret")
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: home + "/keychain.db" + suffix) }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try keychain.addItem("new", "secret") }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try LocalKeychain(home: home).addItem("new", "secret") }
            #expect(try FileSnapshot(of: home).names.filter { !$0.hasPrefix("keys") } == [])
        }
    }

    @Test("An older copy put back while the store is open is refused from the next write on, until a person accepts it")
    func restoredWhileOpen() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            try LocalKeychain(home: home).addItem("early", "secret")
            try FileManager.default.copyItem(atPath: home + "/keychain.db", toPath: home + "/copy.db")
            let keychain = LocalKeychain(home: home)
            try keychain.addItem("late", "secret")
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: home + "/keychain.db" + suffix) }
            try FileManager.default.moveItem(atPath: home + "/copy.db", toPath: home + "/keychain.db")

            let failure = #expect(throws: KeychainFailure.self) { try keychain.addItem("after", "secret") }
            #expect(failure?.cause == .unexpectedState(.rolledBack(missingChangeCount: 1)))
            #expect(try keychain.acceptContent(applying: true) != nil)
            try keychain.addItem("after", "secret")
            #expect(try keychain.secret(of: "early") == "secret")
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try keychain.secret(of: "late") }
            #expect(try LocalKeychain(home: home).secret(of: "after") == "secret")
        }
    }
}

@Suite("Status report and verification")
struct KeychainReportTests {
    @Test("Without a keychain the report contains none, and nothing is created")
    func absent() throws {
        try withTemporaryDirectory { directory in
            let report = try LocalKeychain(home: directory + "/home").report()
            #expect(report.store == nil)
            #expect(report.storePath == directory + "/home/keychain.db")
            #expect(report.applicationIdentifier == "KeychainTestChild")
            #expect(report.accessGroups == ["KeychainTestChild"])
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    @Test("The report contains the number of items and the protector")
    func storedState() throws {
        try withTemporaryDirectory { directory in
            let keychain = LocalKeychain(home: directory + "/home")
            for number in 0..<3 { try keychain.addItem("account \(number)", "secret") }
            try keychain.deleteItem("account 1")
            let store = try #require(try LocalKeychain(home: directory + "/home").report().store)
            #expect(store.itemCount == 2)
            #expect(store.quarantinedCount == 0)
            #expect(store.damagedKeybagCopyCount == 0)
            #expect(store.protector == .keyFile)
            #expect(store.protectorLocation == "\(directory)/home/keys/\(store.id.hexadecimal).key")
            #expect(FileManager.default.fileExists(atPath: store.protectorLocation))
            #expect(!store.isScrubPending)
        }
    }

    @Test("An undamaged keychain passes the verification")
    func whole() throws {
        try withTemporaryDirectory { directory in
            let keychain = LocalKeychain(home: directory + "/home")
            try keychain.addItem("account", "secret")
            let report = try LocalKeychain(home: directory + "/home").verify(purgingQuarantine: false)
            #expect(report.findings.isEmpty)
            #expect(report.structuralProblems.isEmpty)
        }
    }

    @Test("Verifying without a keychain reports 'not found', and creates nothing")
    func nothingToVerify() throws {
        try withTemporaryDirectory { directory throws in
            #expect(throws: KeychainFailure(.itemNotFound, "")) {
                try LocalKeychain(home: directory + "/home").verify(purgingQuarantine: true)
            }
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }
}

/// A keychain that cannot be opened for a while, as while another process replaces its file.
private final class UnreachableBackend: KeychainBackend {
    let openCount = Atomic(0)
    private let start = SystemContinuousTime().nowNanoseconds()
    private let absenceNanoseconds: UInt64 = 200_000_000

    var entitlements: Entitlements { Entitlements(applicationIdentifier: "KeychainTestChild") }
    var promptSettings: PromptSettings { PromptSettings(prompter: ScriptedPresencePrompter(), requester: "test") }
    var newKeychainHolder: KeyHolderKind { .processMemory }

    func passcodePolicy() -> PasscodePolicy { PasscodePolicy(minimumLength: 4, cost: .lowest) }

    func open(creating: Bool) throws(KeychainFailure) -> OpenKeychain {
        openCount.add(1, ordering: .relaxed)
        guard SystemContinuousTime().nowNanoseconds() < start + absenceNanoseconds else { throw KeychainFailure(.itemNotFound, "") }
        throw KeychainFailure(.notAvailable, "the -wal file is missing", requiresReopening: true)
    }
}

@Suite("Retries of the keychain in a file", .waitsForClock)
struct RetryTests {
    @Test("While the keychain cannot be opened, a call pauses between its attempts")
    func pauses() {
        let backend = UnreachableBackend()
        #expect(throws: KeychainFailure(.itemNotFound, "")) { try LocalKeychain(backend: backend).secret(of: "account") }
        // Without pauses there would be hundreds of thousands; with them there are about fifteen.
        let count = backend.openCount.load(ordering: .relaxed)
        #expect(count > 1 && count < 1_000)
    }
}

private struct FixedClock: WallClock {
    let seconds: Double

    func now() -> Double { seconds }
}

@Suite("Every clock satisfies the contract of clocks")
struct WallClockContractTests {
    @Test("The system's clock")
    func systemClock() {
        #expect(WallClockContract.violations(of: SystemWallClock()) == [])
    }

    @Test("The clock of an in-memory keychain")
    func virtualClock() throws {
        #expect(WallClockContract.violations(of: try InMemoryKeychain().clock) == [])
    }

    @Test("A clock with another epoch or unit, or that stands still, fails")
    func broken() {
        let now = Date()
        for seconds in [now.timeIntervalSince1970, now.timeIntervalSinceReferenceDate * 1_000, .nan, .infinity, 0] {
            #expect(WallClockContract.violations(of: FixedClock(seconds: seconds)) != [])
        }
        #expect(WallClockContract.violations(of: FixedClock(seconds: now.timeIntervalSinceReferenceDate)) == [])
    }
}
