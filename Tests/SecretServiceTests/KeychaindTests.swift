// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainSystem
import KeychainTestSupport
import Testing

@testable import ValetCLI

@Suite("The Secret Service with keychaind", .blocking, .requiresMessageBus, .requiresSetuidPrograms)
struct KeychaindTests {
    @Test("Where keychaind keeps the keychain, it has the items; while it is not there, calls fail, and afterwards they work again")
    func daemon() throws {
        let directory = try TemporaryDirectory()
        let socket = directory.path + "/socket"
        func startDaemon() throws -> ChildProcess {
            let daemon = try ChildProcess(
                try BuiltProgram.path(of: "keychaind"),
                ["--socket", socket, "--directory", directory.path + "/keychains", "--entitlements", directory.path + "/entitlements"])
            let isThere = waitUntil { (try? DaemonClient.connector(toSocketAt: socket)(.after(seconds: 5))) != nil }
            try #require(isThere)
            return daemon
        }
        var daemon = try startDaemon()
        let desktop = try Desktop(keychaindSocket: socket)
        let client = try desktop.client()
        let item = try client.createItem(["a": "b"], "secret")
        #expect(try client.secret(of: item).text == "secret" && client.search(["a": "b"]).unlocked == [item])
        let frontEnd = try PortalFrontEnd(desktop.environment)
        let application = try frontEnd.secret(of: "org.example.Mail")
        daemon.send(signal: SIGKILL)
        _ = try daemon.waitUntilEnded()
        #expect(try client.error(item, .item, "GetSecret", [.text(client.session)], "o") == "DBus.Error.Failed")
        #expect(
            try client.error(Desktop.root, .service, "GetSecrets", [.list([.text(item)]), .text(client.session)], "aoo")
                == "DBus.Error.Failed")
        #expect(try frontEnd.answer(for: "org.example.Mail") == .response(2))
        try FileManager.default.removeItem(atPath: socket)
        daemon = try startDaemon()
        #expect(try client.secret(of: item).text == "secret")
        #expect(try client.createItem(["a": "b"], "second", replaces: true) == item)
        #expect(try client.secret(of: item).text == "second")
        #expect(try frontEnd.secret(of: "org.example.Mail") == application)
        withExtendedLifetime(daemon) {}
    }
}
#endif
