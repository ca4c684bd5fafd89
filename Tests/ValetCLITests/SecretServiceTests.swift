// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

@testable import ValetCLI

// `importing-secret-service.txt` runs the import with a real bus and GNOME Keyring. These tests have answers that neither gives on request.

@Suite("Importing from a Secret Service that is slow, damaged, or unusual", .blocking)
struct SecretServiceTests {
    private static let swordfish = ScriptedSecretService.Item(
        label: "Luggage", attributes: ["username": "skroob"], secret: Array("swordfish".utf8))

    private func read(
        _ service: ScriptedSecretService, unlocks: Bool = false, answerMilliseconds: UInt64 = 60_000, promptMilliseconds: UInt64 = 60_000
    ) throws -> SourceContent {
        let bus = try ScriptedBus { service.answers(to: $0) }
        return try read(bus, unlocks: unlocks, answerMilliseconds: answerMilliseconds, promptMilliseconds: promptMilliseconds)
    }

    private func read(
        _ bus: ScriptedBus, unlocks: Bool = false, answerMilliseconds: UInt64 = 60_000, promptMilliseconds: UInt64 = 60_000
    ) throws -> SourceContent {
        try withExtendedLifetime(bus) {
            try SecretServiceSource(
                collection: nil, unlocks: unlocks, bus: [bus.address],
                timeouts: .init(answerMilliseconds: answerMilliseconds, promptMilliseconds: promptMilliseconds)
            ).read()
        }
    }

    private func failure(_ body: () throws -> SourceContent) -> CommandFailure? {
        #expect(throws: CommandFailure.self) { _ = try body() }
    }

    // MARK: Keys

    @Test(
        "The key is the label, and the user unless the label contains it",
        arguments: [
            ("Luggage", ["username": "skroob"], "Luggage/skroob"), ("Luggage", [:], "Luggage"), ("Luggage", ["user": ""], "Luggage"),
            ("Luggage", ["UserName": "skroob", "Title": "Luggage"], "Luggage/skroob"),
            ("git: a", ["user": "b", "server": "c"], "git: a/b"),
            ("Password for 'a' on 'b'", ["username": "a"], "Password for 'a' on 'b'"), ("b/c", ["service": "b", "account": "c"], "b/c"),
            ("", ["service": "b", "username": "c"], "b/c"), ("", ["server": "b"], "b"), ("", ["kind": "b"], "Druidia/0"),
        ] as [(String, [String: String], String)])
    func keys(label: String, attributes: [String: String], key: String) throws {
        let content = try read(ScriptedSecretService(items: [.init(label: label, attributes: attributes, secret: [0, 255])]))
        #expect(content.secrets.map(\.key) == [key] && content.secrets.map(\.value) == [Data([0, 255])])
        #expect(content.secrets.map(\.place) == ["Druidia/0"])
    }

    @Test("The same secret twice is imported once, an empty one is listed, and a key with two secrets is an error")
    func duplicates() throws {
        var service = ScriptedSecretService(items: [Self.swordfish, Self.swordfish, .init(label: "Empty", secret: [])])
        let content = try read(service)
        #expect(content.secrets.count == 1 && content.omissions.map(\.note) == ["Druidia/2: Empty has no value"] && content.isComplete)
        service.items[1].secret = Array("marlin".utf8)
        let conflicting = try read(service)
        let conflict = #expect(throws: CommandFailure.self) { try conflicting.requireOneValueForEachKey(in: "the source") }
        #expect(conflict?.status == .usage && conflict?.problem.contains("Luggage/skroob") == true)
    }

    @Test("Many entries are read")
    func manyEntries() throws {
        let count = Scale.pick(2_000, full: 20_000)
        let items = (0..<count).map { ScriptedSecretService.Item(label: "KEY\($0)", secret: Array("value\($0)".utf8)) }
        let content = try read(ScriptedSecretService(items: items))
        #expect(Set(content.secrets.map(\.key)) == Set((0..<count).map { "KEY\($0)" }))
    }

    // MARK: Prompts

    @Test(
        "A locked entry is unlocked by a prompt, which may be completed before or after it was shown",
        arguments: [[0, 1], [1, 0]])
    func prompt(order: [Int]) throws {
        var item = Self.swordfish
        item.isLocked = true
        let service = ScriptedSecretService(items: [item, Self.swordfish])
        let isUnlocked = Mutex(false)
        let bus = try ScriptedBus { call in
            guard call.text(.member) == "Prompt" else { return service.answers(to: call, isUnlocked: isUnlocked.withLock { $0 }) }
            isUnlocked.withLock { $0 = true }
            let answers: [ScriptedBus.Answer] = [
                .reply([], ""),
                .signal(path: "/prompt", member: "Completed", [.number(0), .variant(signature: "s", .text(""))], "bv"),
            ]
            let other = ScriptedBus.Answer.signal(path: "/other", member: "Completed", [.number(1)], "b")
            return [other] + order.map { answers[$0] }
        }
        #expect(try read(bus, unlocks: true).secrets.map(\.key) == ["Luggage/skroob"])
    }

    @Test("A locked entry is an error without a prompt, with a canceled one, with one that stays open, and if it stays locked")
    func refusedPrompts() throws {
        var item = Self.swordfish
        item.isLocked = true
        var service = ScriptedSecretService(items: [item])
        let locked = failure { try read(service) }
        #expect(locked?.status == .unavailable && locked?.advice.contains("--unlock") == true)
        #expect(locked?.problem == "in the Secret Service, Druidia/Luggage: locked; nothing was stored")
        // The service says that no prompt is needed, and leaves the entry locked.
        service.exceptions["Unlock"] = [.reply([.list([]), .text("/")], "aoo")]
        #expect(failure { try read(service, unlocks: true) }?.problem.contains("still locked") == true)
        service.exceptions = [
            "Prompt": [
                .reply([], ""),
                .signal(path: "/prompt", member: "Completed", [.number(1), .variant(signature: "s", .text(""))], "bv"),
            ]
        ]
        #expect(failure { try read(service, unlocks: true) }?.problem.contains("canceled") == true)
        service.exceptions = ["Prompt": [.reply([], "")]]
        let unanswered = failure { try read(service, unlocks: true, promptMilliseconds: 50) }
        #expect(unanswered?.status == .unavailable && unanswered?.problem.contains("did not answer in time") == true)
    }

    // MARK: Bad answers

    @Test("A bus or a service that stays silent is an error at the deadline, whatever was asked")
    func silence() throws {
        let silentBus = try ScriptedBus(authentication: nil) { _ in [] }
        #expect(failure { try read(silentBus, answerMilliseconds: 50) }?.problem.contains("did not answer in time") == true)
        for member in ["Hello", "OpenSession", "GetAll", "GetSecret"] {
            let service = ScriptedSecretService(items: [Self.swordfish], exceptions: [member: []])
            let stuck = failure { try read(service, answerMilliseconds: 200) }
            #expect(stuck?.status == .unavailable && stuck?.problem.contains("did not answer in time") == true, "\(member)")
        }
        // Signals do not extend the wait.
        let signal = ScriptedBus.Answer.signal(path: "/a", member: "B", [], "")
        let chatty = ScriptedSecretService(items: [Self.swordfish], exceptions: ["GetSecret": Array(repeating: signal, count: 100)])
        #expect(failure { try read(chatty, answerMilliseconds: 200) }?.problem.contains("did not answer in time") == true)
    }

    @Test("A bus that refuses the user, and one that closes the connection")
    func refused() throws {
        let refusing = try ScriptedBus(authentication: "REJECTED EXTERNAL\r\n") { _ in [] }
        #expect(failure { try read(refusing) }?.problem.contains("does not accept this user") == true)
        for member in ["Hello", "GetSecret"] {
            let service = ScriptedSecretService(items: [Self.swordfish], exceptions: [member: [.end]])
            #expect(failure { try read(service) }?.problem.contains("closed the connection") == true, "\(member)")
        }
    }

    @Test("An error of the service names the entry, and shows nothing but its name")
    func serviceErrors() throws {
        let error = "org.freedesktop.Secret.Error.IsLocked"
        let service = ScriptedSecretService(items: [Self.swordfish], exceptions: ["GetSecret": [.error(error)]])
        #expect(failure { try read(service) }?.problem == "Druidia/0: the Secret Service reports the error \(error); nothing was stored")
    }

    @Test("No damage to an answer crashes the import, and no error shows a secret")
    func damagedAnswers() throws {
        let call = DBusMessage(.call, serial: 6, [:])
        let valid = ScriptedBus.reply(to: call, [ScriptedSecretService.secret(Array("swordfish".utf8))], "(oayays)").encoded
        let step = Scale.pick(5, full: 1)
        var damaged = stride(from: 0, to: valid.count, by: step).map { Array(valid[..<$0]) + [] }
        for index in stride(from: 0, to: valid.count, by: step) {
            for byte in [0, 1, 0x28, 0x61, 0x76, 0xFF] as [UInt8] {
                var bytes = valid
                bytes[index] = byte
                damaged.append(bytes)
            }
        }
        for bytes in damaged {
            // After the damaged answer the connection ends, because the client may wait for more.
            let service = ScriptedSecretService(items: [Self.swordfish], exceptions: ["GetSecret": [.raw(bytes), .end]])
            do {
                _ = try read(service)
            } catch let failure as CommandFailure {
                #expect(!(failure.problem + failure.advice).contains("ordfi"))
            }
        }
    }
}
