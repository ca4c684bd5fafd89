// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@testable import SecretService
@testable import ValetCLI

@Suite("Prompts of the Secret Service", .blocking, .requiresMessageBus)
struct PromptTests {
    @Test("A wrong passcode is asked for three times, and leaves the keychain locked")
    func wrongPasscode() throws {
        let pinentry = try ScriptedPinentryProgram(["say OK", "until GETPIN", "say D wrong", "say OK"])
        let desktop = try Desktop(hasPasscode: true, pinentry: pinentry.path)
        let client = try desktop.client()
        #expect(try client.complete(try client.unlock([Desktop.login]).prompt).isDismissed)
        #expect(try client.property("Locked", of: Desktop.login, .collection).boolean == true)
    }

    @Test("The bus is served while a person is asked, and a prompt that is dismissed ends the dialog")
    func servedMeanwhile() throws {
        let pinentry = try ScriptedPinentryProgram(["say OK", "until GETPIN"])
        let desktop = try Desktop(hasPasscode: true, pinentry: pinentry.path)
        let client = try desktop.client()
        let prompt = try client.unlock([Desktop.login]).prompt
        try client.connection.subscribe(path: prompt, interface: "org.freedesktop.Secret.Prompt", "Completed")
        _ = try client.call(prompt, .prompt, "Prompt", [.text("")], "s")
        #expect(waitUntil { pinentry.log.contains("GETPIN") })
        #expect(try client.property("Locked", of: Desktop.login, .collection).boolean == true)
        _ = try client.createItem(["a": "b"], "c", in: "\(Desktop.root)/collection/session")
        _ = try client.call(prompt, .prompt, "Dismiss")
        #expect(try client.completion().isDismissed)
        // The next prompt has a dialog of its own.
        let second = try client.unlock([Desktop.login]).prompt
        try client.connection.subscribe(path: second, interface: "org.freedesktop.Secret.Prompt", "Completed")
        _ = try client.call(second, .prompt, "Prompt", [.text("")], "s")
        _ = try client.call(second, .prompt, "Dismiss")
        #expect(try client.completion().isDismissed)
    }

    @Test("Unlocking an item unlocks its collection, and the prompt returns the paths as the program wrote them")
    func unlockItem() throws {
        let pinentry = try pinentry(Desktop.passcode)
        let desktop = try Desktop(pinentry: pinentry.path)
        let client = try desktop.client()
        let item = try client.createItem([:], "secret")
        let keychain = try Desktop.keychain(home: desktop.home)
        try keychain.set(Desktop.passcode)
        try keychain.lock(.everything)
        #expect(waitUntil { (try? client.search([:]).locked) == [item] })
        let alias = "\(Desktop.root)/aliases/default"
        let session = "\(Desktop.root)/collection/session"
        let unlocking = try client.unlock([alias, item, session])
        #expect(unlocking.unlocked == [session])
        let completion = try client.complete(unlocking.prompt)
        #expect(!completion.isDismissed && Set(completion.result.texts ?? []) == [alias, item, session])
        #expect(try client.secret(of: item).text == "secret")
        #expect(try client.lock([item]) == [item])
        #expect(try client.property("Locked", of: Desktop.login, .collection).boolean == true)
    }

    @Test("A program that asks for prompts in a loop reaches a limit, and others do not")
    func limit() throws {
        let desktop = try Desktop(hasPasscode: true)
        let client = try desktop.client()
        let arguments: [DBusValue] = [.list([.text(Desktop.login)])]
        let errors = try (0...Prompts.limitForConnection).map { _ in try client.error(Desktop.root, .service, "Unlock", arguments, "ao") }
        #expect(errors.dropLast().allSatisfy { $0 == nil } && errors.last == "DBus.Error.LimitsExceeded")
        #expect(try desktop.client().error(Desktop.root, .service, "Unlock", arguments, "ao") == nil)
    }

    @Test("A program that leaves the bus during its prompt takes the dialog with it")
    func lostCaller() throws {
        let pinentry = try ScriptedPinentryProgram(["say OK", "until GETPIN"])
        let desktop = try Desktop(hasPasscode: true, pinentry: pinentry.path)
        var client: SecretClient? = try desktop.client()
        let prompt = try #require(try client?.unlock([Desktop.login]).prompt)
        _ = try client?.call(prompt, .prompt, "Prompt", [.text("")], "s")
        #expect(waitUntil { pinentry.log.contains("GETPIN") })
        client = nil
        let other = try desktop.client()
        #expect(waitUntil { (try? other.error(prompt, .prompt, "Dismiss")) == "DBus.Error.UnknownMethod" })
        #expect(try other.property("Locked", of: Desktop.login, .collection).boolean == true)
    }

    @Test("A bridge that is killed during a prompt leaves the keychain locked, and the next one works")
    func killedBridge() throws {
        let pinentry = try ScriptedPinentryProgram(["say OK", "until GETPIN"])
        let desktop = try Desktop(hasPasscode: true, pinentry: pinentry.path)
        let client = try desktop.client()
        let prompt = try client.unlock([Desktop.login]).prompt
        _ = try client.call(prompt, .prompt, "Prompt", [.text("")], "s")
        #expect(waitUntil { pinentry.log.contains("GETPIN") })
        try desktop.restartBridge(signal: 9)
        let next = try desktop.client()
        #expect(try next.property("Locked", of: Desktop.login, .collection).boolean == true)
        #expect(try next.error(prompt, .prompt, "Prompt", [.text("")], "s") == "DBus.Error.UnknownMethod")
    }
}
#endif
