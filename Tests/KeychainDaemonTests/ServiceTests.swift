// SPDX-License-Identifier: Apache-2.0
import CKeychainTestShims
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainPeers
import KeychainSystem
import KeychainTestSupport
import KeychainTesting
import Synchronization
import Testing

@testable import keychaind

@Suite("A keychain through keychaind", .blocking)
struct DaemonKeychainTests {
    @Test("A process of a user without an account is refused before it is greeted, and one of a known user is not looked for")
    func account() throws {
        let missing = KeychainFailure(.notAvailable, "", cause: .missing)
        let accounts = { (known: Set<UInt32>) in Accounts(known: known) { _ throws(KeychainFailure) in throw missing } }
        let service = try InProcessService(try InMemoryKeychain().keychain, accounts: accounts([]))
        var assembly = MessageAssembly(limit: 1_000)
        let packet = try #require(try RawConnection(service.path).receive())
        let message = try #require(try assembly.add(packet[...]))
        #expect(throws: MalformedMessage.self) { try Hello(parsing: message) }
        #expect(failure { _ = try service.client().sessionStatus() }?.cause == .missing)
        let known = try InProcessService(try InMemoryKeychain().keychain, accounts: accounts([CurrentProcess.effectiveUserID]))
        #expect(failure { _ = try known.client().sessionStatus() } == nil)
    }

    @Test("Connections of users of whom it is not known whether they have an account have a limit too")
    func unknownUsers() throws {
        let isAnswered = Mutex(false)
        let accounts = Accounts { _ throws(KeychainFailure) in _ = waitUntil { isAnswered.withLock { $0 } } }
        let service = try InProcessService(try InMemoryKeychain().keychain, accounts: accounts)
        let waiting = try (0..<Service.largestConnectionCount).map { _ in try RawConnection(service.path) }
        #expect(failure { _ = try service.client().sessionStatus() }?.cause == .busy)
        isAnswered.withLock { $0 = true }
        #expect(waitUntil { failure { _ = try service.client().sessionStatus() } == nil })
        withExtendedLifetime(waiting) {}
    }

    @Test("It satisfies the contract of a keychain with a lock", arguments: KeychainSessionContract.rules)
    func contract(rule: KeychainSessionContract) throws {
        let keychain = try InMemoryKeychain()
        let service = try InProcessService(keychain.keychain)
        let subject = KeychainSessionContract.Subject(keychain: service.client("in-memory"), other: service.client("in-memory")) {
            seconds in
            keychain.clock.advance(by: .seconds(seconds))
        }
        #expect(rule.violations(of: subject) == [])
    }

    @Test("Values of every size arrive as they were stored", arguments: [0, 1, 65_000, 65_536, 200_000, 8 << 20])
    func sizes(byteCount: Int) throws {
        let service = try InProcessService(try InMemoryKeychain().keychain)
        let value = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let client = service.client()
        _ = try client.add(AddRequest(itemClass: .genericPassword, secret: value))
        let found = try client.copyMatching(MatchRequest(query: ItemQuery(itemClass: .genericPassword), includesSecrets: true))
        #expect(found.map(\.secret) == [value])
    }

    @Test(
        "A search for all values keeps the next one waiting until its program has received them or has ended, and no search for one item",
        arguments: [true, false])
    func searches(ends: Bool) throws {
        let service = try InProcessService(try InMemoryKeychain().keychain)
        let client = service.client()
        let value = Data(repeating: 7, count: 2 << 20)
        _ = try client.add(AddRequest(itemClass: .genericPassword, secret: value))
        let request = { MatchRequest(query: ItemQuery(itemClass: .genericPassword), limit: $0, includesSecrets: true) }
        func search() throws -> RawConnection {
            let connection = try RawConnection(service.path)
            try connection.identify()
            try connection.send(Request(.copyMatching(request(nil))).message)
            return connection
        }
        func receive(from connection: RawConnection) throws -> Int {
            var assembly = MessageAssembly(limit: 3 << 20)
            while let packet = try connection.receive() {
                if let message = try assembly.add(packet[...]) { return message.body.count }
            }
            return 0
        }
        let first = try search()
        #expect(waitUntil { first.socket.isReadable })
        let second = try search()
        for _ in 0..<20 { #expect(try client.copyMatching(request(1)).first?.secret == value) }
        let hasReply = second.socket.isReadable
        #expect(!hasReply)
        if ends { first.socket.shutDown() } else { #expect(try receive(from: first) > value.count) }
        #expect(try receive(from: second) > value.count)
    }

    @Test("Searches wait for their turn in order")
    func searchLimit() {
        let limit = SearchLimit(count: 2)
        #expect(limit.begin() && limit.begin())
        let order = Mutex<[Int]>([])
        for number in 0..<3 {
            let isStarted = BackgroundThread.start {
                #expect(limit.begin())
                order.withLock { $0.append(number) }
            }
            #expect(isStarted && waitUntil { limit.waitingCount == number + 1 })
        }
        for count in 1...3 {
            limit.end()
            #expect(waitUntil { order.withLock { $0 } == Array(0..<count) })
        }
        #expect(limit.waitingCount == 0)
    }

    @Test("The reply to an addition has no copy of the secret")
    func addition() throws {
        let service = try InProcessService(try InMemoryKeychain().keychain)
        let connection = try RawConnection(service.path)
        try connection.identify()
        let secret = Array("swordfish and more".utf8)
        try connection.send(Request(.add(AddRequest(itemClass: .genericPassword, secret: Data(secret)))).message)
        let packet = try #require(try connection.receive())
        #expect(!packet.isEmpty && Data(packet).range(of: Data(secret)) == nil)
        let item = try service.client().add(
            AddRequest(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("a")]), secret: Data(secret)))
        #expect(item.secret == Data(secret))
    }

    @Test("A failure of the keychain arrives with its status and its reason")
    func failures() throws {
        let keychain = try InMemoryKeychain().keychain
        let client = try InProcessService(keychain).client("in-memory")
        #expect(throws: KeychainFailure(.itemNotFound, "")) { try client.value(of: "absent") }
        try client.set("a", "1")
        #expect(throws: KeychainFailure(.duplicateItem, "")) {
            try client.add(AddRequest(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("a")])))
        }
        #expect(throws: KeychainFailure(.unimplemented, "")) { try client.add(AddRequest(itemClass: .certificate)) }
    }

    @Test("Threads that call at the same time get the replies to their own calls")
    func threads() async throws {
        let service = try InProcessService(try InMemoryKeychain().keychain)
        let client = service.client()
        let outcomes = await onThreads(
            (0..<12).map { number in
                { @Sendable () -> Bool in
                    (0..<20).allSatisfy { round in
                        let value = "\(number) \(round)"
                        do throws(KeychainFailure) {
                            try client.set("\(number)", value)
                            return try client.value(of: "\(number)") == value
                        } catch {
                            return false
                        }
                    }
                }
            })
        #expect(outcomes.allSatisfy { $0 })
    }

    @Test("An observer is told of a change by another program")
    func observation() throws {
        try withLocalKeychain { keychain, _ in
            let service = try InProcessService(keychain)
            let count = Mutex(0)
            let observation = try service.client().observeChanges { count.withLock { $0 += 1 } }
            try service.client().set("a", "1")
            #expect(waitUntil { count.withLock { $0 } > 0 })
            observation.cancel()
        }
    }

    @Test("The automatic lock counts from the last use by any program, and by the clock of keychaind")
    func automaticLock() throws {
        let keychain = try InMemoryKeychain()
        try keychain.setPasscode("swordfish")
        let service = try InProcessService(keychain.keychain)
        let (client, other) = (service.client(), service.client())
        try client.set("a", "1")
        try client.unlock(Passcode(text: "swordfish"), autoLock: .after(seconds: 60))
        for _ in 0..<3 {
            keychain.clock.advance(by: .seconds(59))
            #expect(try other.value(of: "a") == "1")
        }
        keychain.clock.advance(by: .seconds(61))
        #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try client.value(of: "a") }
    }

    @Test("A context keeps what a person has entered for the calls of its program, until it is invalidated")
    func contexts() throws {
        let keychain = try InMemoryKeychain()
        try keychain.setPasscode("swordfish")
        let client = try InProcessService(keychain.keychain).client("in-memory")
        let control = AccessControl(.whenUnlocked, constraint: .userPresence)
        _ = try client.add(AddRequest(itemClass: .genericPassword, secret: Data([1]), accessControl: control))
        let context = AuthenticationContext()
        let request = MatchRequest(
            query: ItemQuery(itemClass: .genericPassword), includesSecrets: true, authentication: Authentication(context: context))
        keychain.person.answers(.correctPasscode)
        #expect(try client.copyMatching(request).first?.secret == Data([1]))
        #expect(try client.copyMatching(request).first?.secret == Data([1]))
        #expect(keychain.person.questions.count == 1)
        context.invalidate()
        #expect(throws: KeychainFailure(.authFailed, "")) { try client.copyMatching(request) }
    }
}

@Suite("A connection to keychaind", .blocking)
struct ConnectionTests {
    @Test("The password and the texts of an authentication context are bounded, because keychaind keeps them")
    func largeContext() throws {
        let client = try InProcessService(try InMemoryKeychain().keychain).client()
        try client.set("a", "1")
        for byteCount in [4_000, 5_000] {
            let contexts = [AuthenticationContext(), AuthenticationContext()]
            contexts[0].settings.reason = String(repeating: "r", count: byteCount)
            let password = [UInt8](repeating: 1, count: byteCount)
            contexts[1].setApplicationPassword(unsafe password.withUnsafeBytes { unsafe ApplicationPassword(given: $0) })
            for context in contexts {
                let request = MatchRequest(
                    query: ItemQuery(itemClass: .genericPassword), authentication: Authentication(context: context))
                let refusal = failure { _ = try client.copyMatching(request) }
                #expect(refusal?.status == (byteCount == 4_000 ? nil : .parameter))
            }
        }
    }

    @Test("The connection that has been idle longest ends when a user has many, and no call fails")
    func idleConnections() throws {
        let service = try InProcessService(try InMemoryKeychain().keychain)
        let first = try RawConnection(service.path)
        try first.identify()
        let clients = (0..<(Service.largestIdleCount + 20)).map { _ in service.client() }
        for client in clients { try client.set("a", "1") }
        #expect(try first.receive() == nil)
        for client in clients { #expect(try client.value(of: "a") == "1") }
    }

    @Test("A user with too many connections is told so, and served again when they end")
    func tooManyConnections() throws {
        let service = try InProcessService(try InMemoryKeychain().keychain)
        try service.client().set("a", "1")
        // None of them says who it is.
        var connections = try (0..<Service.largestConnectionCount).map { _ in try RawConnection(service.path) }
        let failure = #expect(throws: KeychainFailure.self) { try service.client().value(of: "a") }
        #expect(failure?.cause == .busy)
        connections = []
        #expect(waitUntil { (try? service.client().value(of: "a")) == "1" })
        withExtendedLifetime(connections) {}
    }

    @Test("A program without an identity can neither set or remove the passcode of its user nor learn what that would delete")
    func passcode() throws {
        let service = try InProcessService(try InMemoryKeychain().keychain, as: .anyProgram)
        try service.client().set("a", "1")
        let refused = KeychainFailure(.missingEntitlement, "")
        #expect(throws: refused) { try service.client().setPasscode(try Passcode(text: "swordfish"), autoLock: .never) }
        #expect(throws: refused) { try service.client().passcodeRemoval(try Passcode(text: "swordfish")) }
        #expect(throws: refused) {
            try service.client().removePasscode(try Passcode(text: "swordfish"), deleting: PasscodeRemoval(items: []))
        }
        #expect(try service.client().sessionStatus().isPasscodeSet == false)
    }

    @Test(
        "A program that knows the passcode can change it, unless it is in a sandbox",
        arguments: [PeerIdentity.anyProgram, .sandboxed(.unnamed)])
    func changedPasscode(identity: PeerIdentity) throws {
        let keychain = try InMemoryKeychain()
        try keychain.setPasscode("swordfish")
        let client = try InProcessService(keychain.keychain, as: identity).client()
        let change = { (current: String) in
            failure {
                try client.changePasscode(
                    from: try Passcode(text: current), to: try Passcode(text: "tunafish"), rotatingKeys: false, autoLock: .never)
            }
        }
        if case .sandboxed = identity {
            #expect(change("swordfish")?.status == .missingEntitlement)
            #expect(failure { try keychain.keychain.unlock(Passcode(text: "swordfish"), autoLock: .never) } == nil)
        } else {
            #expect(change("sturgeon")?.status == .authFailed)
            #expect(change("swordfish") == nil)
            #expect(failure { try keychain.keychain.unlock(Passcode(text: "tunafish"), autoLock: .never) } == nil)
        }
    }
}

@Suite("The program keychaind", .blocking)
struct KeychaindTests {
    @Test("It keeps the items of a user while it is not running, and calls go on after a restart", arguments: [SIGTERM, SIGKILL])
    func restart(signal: Int32) throws {
        let service = try SpawnedService()
        let client = service.client()
        try client.set("a", "1")
        let ending = try service.restart(with: signal)
        #expect(ending == (signal == SIGTERM ? .exited(0) : .killed(bySignal: SIGKILL)))
        #expect(try client.value(of: "a") == "1")
        try client.set("b", "2")
        #expect(try service.client().value(of: "b") == "2")
    }

    @Test("After a restart, as after a boot, the keychain is locked until it is unlocked", arguments: [SIGTERM, SIGKILL])
    func lockedAfterRestart(signal: Int32) throws {
        let service = try SpawnedService { keychain in try keychain.setPasscode(Passcode(text: "swordfish"), autoLock: .never) }
        let client = service.client()
        try client.unlock(Passcode(text: "swordfish"), autoLock: .never)
        try client.set("a", "1")
        _ = try service.restart(with: signal)
        #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try client.value(of: "a") }
        #expect(try client.sessionStatus().state == .neverUnlocked)
        try client.unlock(Passcode(text: "swordfish"), autoLock: .never)
        #expect(try client.value(of: "a") == "1")
    }

    @Test("Without it every call fails at once, and nothing else is used instead")
    func absent() throws {
        try withTemporaryDirectory { directory in
            let client = DaemonKeychain.test(directory + "/socket", "app", storeID: .random())
            #expect(throws: KeychainFailure(.notAvailable, "")) { try client.set("a", "1") }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try client.value(of: "a") }
        }
    }

    @Test("Calls that find no service use up no descriptors")
    func absentAgainAndAgain() throws {
        try withTemporaryDirectory { directory in
            let output = try ChildProcess.run(
                "/bin/sh",
                [
                    "-c", "ulimit -n 64; exec \"$@\"", "sh", try BuiltProgram.path(of: "KeychainTestChild"), "use-daemon",
                    directory + "/socket", StoreID.random().hexadecimal, "group", "attempts",
                ]
            ).output
            #expect(output == "failed by missing\n")
        }
    }

    @Test("It does not take the socket of another one that runs")
    func socketInUse() throws {
        let service = try SpawnedService()
        let other = try ChildProcess.run(
            try BuiltProgram.path(of: "keychaind"), ["--socket", service.path, "--directory", service.directory.path + "/other"])
        #expect(other.ending != .exited(0))
        try service.client().set("a", "1")
    }

    @Test("Other users cannot read its files")
    func files() throws {
        let service = try SpawnedService()
        try service.client().set("a", "1")
        let directory = "\(service.directory.path)/keychains/\(geteuid())"
        #expect(try FileStatus(of: directory).permissions == 0o700)
        #expect(try FileStatus(of: directory + "/keychain.db").permissions == 0o600)
    }

    @Test("Its memory has no passcode and no password once the call or the context has ended", .requiresRoot)
    func memory() throws {
        let service = try SpawnedService()
        let client = service.client()
        func marker(_ name: String) -> [UInt8] { Array("canary of \(name) \(UUID().uuidString)".utf8) }
        let (passcode, password) = (marker("a passcode"), marker("a password"))
        try client.set("a", "1")
        #expect(throws: KeychainFailure.self) {
            try client.unlock(try Passcode(text: String(decoding: passcode, as: UTF8.self)), autoLock: .never)
        }
        let context = AuthenticationContext()
        context.setApplicationPassword(unsafe password.withUnsafeBytes { unsafe ApplicationPassword(given: $0) })
        _ = try client.copyMatching(
            MatchRequest(query: ItemQuery(itemClass: .genericPassword), authentication: Authentication(context: context)))
        #expect(try ProcessMemory.finds([password], in: service.process.processID) == [0])
        context.invalidate()
        let left = try ProcessMemory.finds([passcode, password], in: service.process.processID)
        #expect(left == [])
    }

    @Test("Its memory has no value that a program has stored, replaced, or read", .requiresRoot, arguments: [12, 40, 3_000, 200_000])
    func values(byteCount: Int) throws {
        let service = try SpawnedService()
        let client = service.client()
        func value() -> Data { Data((0..<byteCount).map { _ in UInt8.random(in: 1...255) }) }
        let (added, replacing) = (value(), value())
        _ = try client.add(
            AddRequest(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("a")]), secret: added))
        let search = MatchRequest(query: ItemQuery(itemClass: .genericPassword), limit: nil, includesSecrets: true)
        #expect(try client.copyMatching(search).map(\.secret) == [added])
        try client.update(UpdateRequest(query: .account("a"), secret: replacing))
        #expect(try client.copyMatching(search).map(\.secret) == [replacing])
        #expect(throws: KeychainFailure(.unimplemented, "")) { try client.add(AddRequest(itemClass: .certificate, secret: added)) }
        // The connection wipes what a call has left after it has replied.
        _ = try client.sessionStatus()
        let sought = [added, replacing].map { Array($0.prefix(64)) }
        #expect(try ProcessMemory.finds(sought, in: service.process.processID) == [])
    }

    @Test("Items that need a person are refused at once without an agent")
    func presence() throws {
        let service = try SpawnedService()
        let control = AccessControl(.whenUnlocked, constraint: .applicationPassword)
        #expect(throws: KeychainFailure(.interactionNotAllowed, "")) {
            try service.client().add(AddRequest(itemClass: .genericPassword, secret: Data([1]), accessControl: control))
        }
    }
}

@Suite("keychaind killed under its programs", .blocking)
struct KeychaindKillTests {
    /// How many times keychaind is killed: 1,000 times at full scale.
    private static let killCount = Scale.pick(20, full: 1_000)

    @Test("Nothing that was acknowledged is lost, what was not is reported as unknown, and no call hangs")
    func kills() throws {
        let service = try SpawnedService()
        let (path, storeID) = (service.path, service.storeID)
        let isEnding = Mutex(false)
        let acknowledgedCount = Mutex(0)
        // Eight programs, each with connections of its own.
        let writers = (0..<8).map { writer in
            { @Sendable () -> [Write] in
                let client = DaemonKeychain.test(path, "app", storeID: storeID)
                var writes: [Write] = []
                while !isEnding.withLock({ $0 }) {
                    let write = "\(writer)-\(writes.count)"
                    do throws(KeychainFailure) {
                        try client.set(write, write)
                        writes.append(Write(account: write, outcome: .acknowledged))
                        acknowledgedCount.withLock { $0 += 1 }
                    } catch {
                        writes.append(Write(account: write, outcome: error.cause == .outcomeUnknown ? .unknown : .refused))
                        waitUntil { SpawnedService.isListening(at: path) || isEnding.withLock { $0 } }
                    }
                }
                return writes
            }
        }
        let threads = StartedThreads(writers)
        defer { isEnding.withLock { $0 = true } }
        for _ in 0..<Self.killCount {
            let before = acknowledgedCount.withLock { $0 }
            #expect(waitUntil { acknowledgedCount.withLock { $0 } > before })
            #expect(try service.restart(with: SIGKILL) == .killed(bySignal: SIGKILL))
        }
        isEnding.withLock { $0 = true }
        let writes = try #require(threads.outcomes()).flatMap(\.self)
        let client = service.client()
        let found = try client.copyMatching(MatchRequest(query: ItemQuery(itemClass: .genericPassword), limit: nil))
        let accounts = Set(found.compactMap { $0.attributes.text(.account) })
        let acknowledged = writes.filter { $0.outcome == .acknowledged }.map(\.account)
        #expect(acknowledged.count >= Self.killCount)
        #expect(accounts.isSuperset(of: acknowledged))
        #expect(accounts.isDisjoint(with: writes.filter { $0.outcome == .refused }.map(\.account)))
    }

    private struct Write: Sendable {
        enum Outcome: Sendable { case acknowledged, unknown, refused }

        let account: String
        let outcome: Outcome
    }
}
