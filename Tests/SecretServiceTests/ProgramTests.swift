// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Programs that use the Secret Service", .blocking, .requiresMessageBus)
struct ProgramTests {
    @Test("secret-tool stores, replaces, searches, reads, and deletes")
    func secretTool() throws {
        let desktop = try Desktop()
        let attributes = ["service", "mail", "user", "ada"]
        #expect(try desktop.run("secret-tool", ["lookup"] + attributes).ending == .exited(1))
        for secret in ["first", "second"] {
            #expect(try desktop.run("secret-tool", ["store", "--label=Mail"] + attributes, input: secret).ending == .exited(0))
            #expect(try desktop.run("secret-tool", ["lookup"] + attributes).output == secret + "\n")
        }
        #expect(try desktop.client().search([:]).unlocked.count == 1)
        let found = try desktop.run("secret-tool", ["search", "--all", "user", "ada"])
        for line in ["label = Mail", "secret = second", "attribute.service = mail"] { #expect(found.output.contains(line)) }
        #expect(
            try desktop.run("secret-tool", ["store", "--label=Session", "--collection=session", "a", "b"], input: "c").ending == .exited(0))
        #expect(try desktop.run("secret-tool", ["clear"] + attributes).ending == .exited(0))
        #expect(try desktop.run("secret-tool", ["lookup"] + attributes).ending == .exited(1))
    }

    @Test("secret-tool finds an item of a locked keychain, and unlocks it with a prompt")
    func secretToolUnlocks() throws {
        let pinentry = try pinentry(Desktop.passcode)
        let desktop = try Desktop(pinentry: pinentry.path)
        #expect(try desktop.run("secret-tool", ["store", "--label=Mail", "user", "ada"], input: "secret").ending == .exited(0))
        let keychain = try Desktop.keychain(home: desktop.home)
        try keychain.set(Desktop.passcode)
        try keychain.lock(.everything)
        try desktop.restartBridge()
        #expect(try desktop.run("secret-tool", ["lookup", "user", "ada"]).output == "secret\n")
    }

    @Test("Introspection of the whole tree works, which debuggers use")
    func introspection() throws {
        let desktop = try Desktop()
        let item = try desktop.client().createItem([:], "a")
        let result = try desktop.run(
            "gdbus", ["introspect", "--session", "--recurse", "--dest", "org.freedesktop.secrets", "--object-path", "/"])
        #expect(result.ending == .exited(0))
        for path in [item, "\(Desktop.root)/aliases/default", "\(Desktop.root)/collection/session"] {
            #expect(result.output.contains("node \(path) {"))
        }
    }
}
#endif
