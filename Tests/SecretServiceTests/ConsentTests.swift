// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

@testable import SecretService

/// A person who answers when the test says so, and not if the question is withdrawn.
private final class Person: ConsentPrompter, Sendable {
    private let hasDisplay: Mutex<Bool>
    private let questions = Mutex<[ConsentQuestion]>([])
    private let dialog = Mutex<(interruption: FileDescriptor, end: DialogEnd)?>(nil)

    private final class DialogEnd: Sendable {
        let wakeup: WakeupDescriptor

        init() throws(Errno) { wakeup = try WakeupDescriptor() }
    }

    init(canAsk: Bool = true) { hasDisplay = Mutex(canAsk) }

    var canAsk: Bool { hasDisplay.withLock(\.self) }

    func leaveDisplay() { hasDisplay.withLock { $0 = false } }

    var asked: [ConsentQuestion] { questions.withLock(\.self) }

    func prompter(_ descriptor: FileDescriptor) -> any ConsentPrompter {
        dialog.withLock { dialog in dialog = (try? DialogEnd()).map { (descriptor, $0) } }
        return self
    }

    /// Closes the dialog without an answer.
    func closeDialog() { dialog.withLock { $0?.end.wakeup.set() } }

    func requestConsent(_ question: ConsentQuestion) throws(PresenceRefusal) {
        questions.withLock { $0.append(question) }
        guard let (interruption, end) = dialog.withLock(\.self) else { return }
        // Until the dialog is ended.
        let descriptors = [interruption, end.wakeup.descriptor]
        guard (try? FileDescriptor.wait(for: descriptors, until: .after(seconds: 60)).isEmpty) == false else { return }
        throw .timedOut
    }
}

@Suite("Calls that wait for a person", .blocking)
struct ConsentTests {
    private let time = ManualTime()

    private func request(
        _ connection: String = ":1.1", _ owner: String = "program:/usr/bin/a", by program: String? = nil
    ) -> ConsentRequest {
        ConsentRequest(
            caller: Caller(connection: connection, process: 7, title: "tool", program: program), owner: ItemOwner(owner), label: "Mail")
    }

    private func consents(_ person: Person, _ inbox: Inbox? = nil) throws -> Consents<Int> {
        Consents<Int>(try inbox ?? Inbox(), nowNanoseconds: { [time] in time.nowNanoseconds() }, prompter: { person.prompter($0) })
    }

    private func end(afterSeconds seconds: UInt64) -> UInt64 { time.nowNanoseconds() + seconds * 1_000_000_000 }

    /// The number of the dialog that has ended without an answer.
    private func endedDialog(_ inbox: Inbox) throws -> Int {
        var events: [Inbox.Event] = []
        #expect(
            waitUntil {
                events += inbox.take()
                return !events.isEmpty
            })
        guard case .answered(let dialog, nil)? = events.first else { throw KeychainFailure(.internal, "\(events)") }
        return dialog
    }

    @Test("One dialog is shown at a time, for all calls of a program about an owner, and ends with the last one")
    func oneDialog() throws {
        let person = Person()
        let inbox = try Inbox()
        let consents = try consents(person, inbox)
        let end = end(afterSeconds: 10)
        try consents.hold(1, request(), endNanoseconds: end)
        try consents.hold(2, request(), endNanoseconds: end + 100)
        try consents.hold(3, request(":1.2"), endNanoseconds: .max)
        #expect(waitUntil { person.asked.count == 1 })
        #expect(person.asked.first?.purpose == "read, change, and delete the items of /usr/bin/a, such as \"Mail\"")
        #expect(person.asked.first?.requester == "An unverified program (tool, process 7)")
        #expect(person.asked.first?.timeoutSeconds == 10)
        #expect(consents.nextEventNanoseconds == end)
        time.pass(nanoseconds: end - time.nowNanoseconds() - 1)
        #expect(consents.takeExpired().isEmpty)
        time.pass(nanoseconds: 1)
        #expect(consents.takeExpired().map(\.message) == [1])
        #expect(consents.askNext().isEmpty && person.asked.count == 1)
        consents.removeAll(of: ":1.1")
        // The dialog of the program that has left the bus is withdrawn, which answers nothing.
        #expect(try consents.takeAnswered(endedDialog(inbox)) == nil)
        time.pass(nanoseconds: Consents<Int>.pauseNanoseconds)
        #expect(consents.askNext().isEmpty && waitUntil { person.asked.count == 2 })
        consents.removeAll(of: ":1.2")
        #expect(consents.nextEventNanoseconds == nil)
    }

    @Test("A moment passes before the next dialog, which a second click for the former one would answer")
    func pause() throws {
        let person = Person()
        let inbox = try Inbox()
        let consents = try consents(person, inbox)
        try consents.hold(1, request(), endNanoseconds: .max)
        consents.removeAll(of: ":1.1")
        _ = try endedDialog(inbox)
        try consents.hold(2, request(":1.2"), endNanoseconds: .max)
        time.pass(nanoseconds: Consents<Int>.pauseNanoseconds - 1)
        #expect(consents.askNext().isEmpty && person.asked.count == 1)
        #expect(consents.nextEventNanoseconds == time.nowNanoseconds() + 1)
        time.pass(nanoseconds: 1)
        #expect(consents.askNext().isEmpty && waitUntil { person.asked.count == 2 })
        #expect(consents.nextEventNanoseconds == .max)
        consents.removeAll(of: ":1.2")
    }

    @Test("A program that asks for the items of many others does not keep another program waiting")
    func turns() throws {
        let person = Person()
        let inbox = try Inbox()
        let consents = try consents(person, inbox)
        let programs = [":1.1": "program:/usr/bin/many", ":1.2": nil, ":1.3": nil]
        for (connection, owner) in [(":1.1", "a"), (":1.1", "b"), (":1.1", "c"), (":1.2", "d"), (":1.3", "e")] {
            try consents.hold(0, request(connection, "program:/usr/bin/\(owner)", by: programs[connection] ?? nil), endNanoseconds: .max)
        }
        for count in 1...5 {
            #expect(waitUntil { person.asked.count == count })
            person.closeDialog()
            #expect(try consents.takeAnswered(endedDialog(inbox))?.calls.count == 1)
            time.pass(nanoseconds: Consents<Int>.pauseNanoseconds)
            #expect(consents.askNext().isEmpty)
        }
        // The programs that cannot be told apart share their turns.
        #expect(person.asked.map { $0.purpose.split(separator: "/").last?.first } == ["a", "d", "b", "e", "c"])
    }

    @Test("Without a display no call waits")
    func noDisplay() throws {
        let consents = try consents(Person(canAsk: false))
        #expect(throws: BusError.isForeign) { try consents.hold(1, request(), endNanoseconds: .max) }
        #expect(consents.nextEventNanoseconds == nil)
    }

    @Test("Without a display no call waits for the end of the pause either")
    func noDisplayAfterDialog() throws {
        let person = Person()
        let inbox = try Inbox()
        let consents = try consents(person, inbox)
        try consents.hold(1, request(), endNanoseconds: .max)
        #expect(waitUntil { person.asked.count == 1 })
        consents.removeAll(of: ":1.1")
        _ = try endedDialog(inbox)
        person.leaveDisplay()
        #expect(throws: BusError.isForeign) { try consents.hold(2, request(":1.2"), endNanoseconds: .max) }
    }

    @Test("An answer ends the waiting of all calls of the program about the owner, also on other connections")
    func sameProgram() throws {
        let person = Person()
        let inbox = try Inbox()
        let consents = try consents(person, inbox)
        for (message, program, owner) in [(1, "mail", "a"), (2, "mail", "a"), (3, "mail", "b"), (4, "news", "a")] {
            let request = request(":1.\(message)", "program:/usr/bin/\(owner)", by: "program:/usr/bin/\(program)")
            try consents.hold(message, request, endNanoseconds: .max)
        }
        #expect(waitUntil { person.asked.count == 1 })
        person.closeDialog()
        #expect(try consents.takeAnswered(endedDialog(inbox))?.calls.map(\.message) == [1, 2])
    }

    @Test("No dialog is shown for a call that ends before a person could have read it")
    func shortRest() throws {
        let person = Person()
        let inbox = try Inbox()
        let consents = try consents(person, inbox)
        try consents.hold(1, request(), endNanoseconds: .max)
        let end = end(afterSeconds: UInt64(ConsentRequest.shortestDialogSeconds) + 1)
        try consents.hold(2, request(":1.2"), endNanoseconds: end)
        consents.removeAll(of: ":1.1")
        _ = try endedDialog(inbox)
        time.pass(nanoseconds: Consents<Int>.pauseNanoseconds + 1)
        #expect(consents.askNext().isEmpty && consents.nextEventNanoseconds == end)
        time.pass(nanoseconds: end - time.nowNanoseconds())
        #expect(consents.takeExpired().map(\.message) == [2])
        #expect(person.asked.count == 1)
    }

    @Test("A program that lets calls wait in a loop, on as many connections as it likes, reaches a limit, and others do not")
    func limit() throws {
        let consents = try consents(Person())
        let end = end(afterSeconds: 10)
        for number in 0..<ConsentRequest.limitForProgram { try consents.hold(number, request(":1.\(number)"), endNanoseconds: end) }
        #expect(throws: BusError.limitsExceeded("too many calls wait for a person")) {
            try consents.hold(0, request(":1.999"), endNanoseconds: end)
        }
        try consents.hold(0, request(":1.1000", by: "program:/usr/bin/mail"), endNanoseconds: end)
        time.pass(seconds: 10)
        #expect(consents.takeExpired().count == ConsentRequest.limitForProgram + 1)
    }
}

/// Programs by the numbers of their processes.
private final class KnownPrograms: ProgramIdentifying, Sendable {
    private let programs: [Int32: String]

    init(programs: [Int32: String]) { self.programs = programs }

    func identity(ofProcess process: Int32) throws(KeychainFailure) -> String? {
        if process == 8 { throw KeychainFailure(.itemNotFound, "the process has ended") }
        guard let program = programs[process] else { throw KeychainFailure(.notAvailable, "the process has ended") }
        return program.isEmpty ? nil : program
    }
}

@Suite("Which program may use which items", .blocking)
struct AccessRightsTests {
    private static let programs = KnownPrograms(programs: [
        1: "program:/usr/bin/nm-applet", 2: "program:/usr/bin/gnome-shell", 3: "program:/home/nm-applet/tool", 4: "",
        5: "flatpak:nm-applet",
        6: "program:/usr/bin/seahorse",
    ])

    private let directory: TemporaryDirectory
    private let keychain: LocalKeychain

    init() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        self.directory = directory
        var configuration = KeychainConfiguration(home: directory.path)
        configuration.useTestPolicy(in: directory.path)
        keychain = LocalKeychain(
            configuration: configuration,
            entitlements: Entitlements(applicationIdentifier: "test", keychainAccessGroups: [GrantStorage.accessGroup]))
    }

    private func rights(_ mode: AccessMode = .ask) -> AccessRights { AccessRights(SeparatedAccess(mode, Self.programs), keychain) }

    private func caller(_ process: Int32, _ rights: AccessRights) throws -> Caller {
        try rights.caller(":1.\(process)") { process }
    }

    private let network = ItemLookup([(ItemAttribute.schema, "org.freedesktop.NetworkManager.Connection")])

    @Test("Items that programs of a desktop share belong to them only if one of these has stored them")
    func sharedItems() throws {
        let rights = rights()
        let shared = ItemOwner("shared:network")
        #expect(try caller(1, rights).owner(of: network) == shared && caller(2, rights).owner(of: network) == shared)
        for process: Int32 in [3, 5] {
            let program = try caller(process, rights)
            #expect(program.owner(of: network) == ItemOwner(try #require(program.program)))
            #expect(try rights.decision(program, shared) == .undecided)
        }
        #expect(try caller(1, rights).owner(of: ItemLookup([])) == ItemOwner("program:/usr/bin/nm-applet"))
        #expect(try rights.decision(caller(2, rights), shared) == .allowed)
        #expect(try caller(4, rights).owner(of: network) == .everyProgram)
        let tool = Caller(connection: ":1.7", process: 7, title: "", program: "program:/usr/bin/secret-tool")
        #expect(tool.identity == nil && tool.owner(of: network) == ItemOwner("program:/usr/bin/secret-tool"))
    }

    @Test("A program sees an item of another one with an attribute of its own, and a program that lists all items always")
    func visibility() throws {
        let rights = rights()
        let foreign = ItemOwner("program:/usr/bin/a")
        let specific = ItemLookup([("user", "Skroob"), (ItemAttribute.schema, "x")])
        for (process, lookup, expected): (Int32, ItemLookup?, AccessRights.SearchRank?) in [
            (1, specific, .foreign), (1, network, nil), (1, ItemLookup([]), nil), (1, nil, nil), (6, nil, .foreign),
        ] {
            #expect(try rights.rank(of: foreign, for: caller(process, rights), searching: lookup) == expected)
        }
        #expect(try rights.rank(of: .everyProgram, for: caller(1, rights), searching: nil) == .everyProgram)
        #expect(try rights.rank(of: ItemOwner("program:/usr/bin/nm-applet"), for: caller(1, rights), searching: nil) == .own)
        rights.note(isAllowed: true, try caller(1, rights), foreign)
        #expect(try rights.rank(of: foreign, for: caller(1, rights), searching: nil) == .foreign)
        let closed = self.rights(.closed)
        #expect(try closed.rank(of: foreign, for: caller(6, closed), searching: specific) == nil)
    }

    @Test("A decision counts for a program by its name, and for one without a name as long as its connection")
    func decisions() throws {
        let rights = rights()
        let (foreign, other) = (ItemOwner("program:/usr/bin/a"), ItemOwner("program:/usr/bin/b"))
        rights.note(isAllowed: true, try caller(1, rights), foreign)
        rights.note(isAllowed: false, try caller(1, rights), other)
        rights.note(isAllowed: true, try caller(4, rights), foreign)
        #expect(try rights.decision(caller(1, rights), foreign) == .allowed && rights.decision(caller(1, rights), other) == .refused)
        #expect(try rights.decision(caller(4, rights), foreign) == .allowed)
        for process: Int32 in [1, 4] { rights.removeAll(of: ":1.\(process)") }
        #expect(try rights.decision(caller(1, rights), foreign) == .allowed && rights.decision(caller(1, rights), other) == .refused)
        #expect(try rights.decision(caller(4, rights), foreign) == .undecided)
        rights.note(isAllowed: false, try caller(4, rights), foreign)
        #expect(try rights.decision(rights.caller(":1.40") { 4 }, foreign) == .refused)
        let closed = self.rights(.closed)
        #expect(try closed.decision(caller(1, closed), foreign) == .refused)
        let next = self.rights()
        #expect(try next.decision(caller(1, next), foreign) == .allowed && next.decision(caller(1, next), other) == .undecided)
        #expect(try GrantStorage(keychain).list().map(\.owner) == ["program:/usr/bin/a"])
    }

    @Test("A process that cannot be identified is no program without a name, and is asked about again")
    func unknownProcess() throws {
        let rights = rights()
        #expect(throws: KeychainFailure(.notAvailable, "")) { try caller(9, rights) }
        // It has ended, or is one of root.
        #expect(try caller(8, rights).program == nil)
        #expect(try rights.caller(":1.9") { 1 }.program == "program:/usr/bin/nm-applet")
    }

    @Test("Two names that Unicode takes for equivalent are two owners")
    func bytes() {
        #expect(ItemOwner("program:/usr/bin/\u{E9}") != ItemOwner("program:/usr/bin/e\u{301}"))
    }

    @Test(
        "The mode is one of three words in a file of root",
        arguments: [("open\n", AccessMode.open), ("ask", .ask), (" closed \n", .closed), ("", nil), ("open ask", nil), ("Open", nil)])
    func modes(text: String, mode: AccessMode?) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/mode"
        #expect(try AccessMode.configured(path) == .ask)
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        guard geteuid() == 0 else { return }
        #expect((try? AccessMode.configured(path)) == mode)
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
        #expect(throws: KeychainFailure(.notAvailable, "")) { try AccessMode.configured(path) }
    }
}
#endif
