// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainSystem
import KeychainTestSupport
import Testing

/// The programs keychaind and keychain-agent, and a program that calls.
@Suite("The agent of keychaind", .blocking)
struct AgentProgramTests {
    private static let passcode = "swordfish"

    private func service() throws -> SpawnedService {
        try SpawnedService { keychain in
            try keychain.setPasscode(Passcode(text: Self.passcode), autoLock: .never)
            try keychain.with(entitlements: Entitlements(applicationIdentifier: "app")).addSafe()
        }
    }

    /// Starts keychaind's agent with a pinentry program.
    private func launcher(_ service: SpawnedService, _ pinentry: String, _ variables: [String: String] = [:]) -> ProcessAgentLauncher {
        let keychain = LocalKeychain(home: service.directory.path + "/unused") { configuration in
            configuration.pinentry = .program(pinentry)
            configuration.promptEnvironment = PromptEnvironment(variables)
        }
        return ProcessAgentLauncher(for: keychain, socketPath: service.path)
    }

    @Test("A program that calls gets an agent of its own, whose pinentry program asks with the name that keychaind has found out")
    func answer() throws {
        let service = try service()
        let pinentry = try ScriptedPinentryProgram(["say OK", "until GETPIN", "say D \(Self.passcode)", "say OK"])
        let client = service.client(launcher: launcher(service, pinentry.path, ["DISPLAY": ":nowhere"]))
        #expect(try client.value(of: "safe", "the test") == "12345")
        let log = pinentry.log
        #expect(log.contains("An unverified program (process \(CurrentProcess.id)) wants to read an item that you protected."), "\(log)")
        #expect(log.contains("the test"))
    }

    @Test("pinentry-tty asks on the terminal that the program names")
    func terminal() throws {
        let service = try service()
        let terminal = try PseudoTerminal(isKept: true)
        let launcher = launcher(service, "/usr/bin/pinentry-tty", ["GPG_TTY": terminal.name, "TERM": "vt100", "LANG": "C.UTF-8"])
        #expect(
            BackgroundThread.start {
                for entry in ["wrong", Self.passcode] where terminal.wait(for: "Passcode:") != nil { terminal.type(entry + "\n") }
            })
        #expect(try service.client(launcher: launcher).value(of: "safe", nil) == "12345")
    }

    @Test("An agent that does not start, or a pinentry program that dies, fails the call", arguments: ["missing", "dying"])
    func failures(kind: String) throws {
        let service = try service()
        let pinentry = try ScriptedPinentryProgram(["say OK", "until GETPIN", "die"])
        let path = kind == "missing" ? "/nowhere/pinentry" : pinentry.path
        let client = service.client(launcher: launcher(service, path, ["DISPLAY": ":nowhere"]))
        #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try client.value(of: "safe", nil) }
    }

    @Test("The memory of an agent has neither a passcode after its prompt nor a value or a key", .requiresRoot)
    func memory() throws {
        let service = try service()
        let terminal = try PseudoTerminal(isKept: true)
        let agent = try ChildProcess(
            BuiltProgram.path(of: "keychain-agent"), ["--socket", service.path],
            environment: [
                "KEYCHAIN_PINENTRY": "/usr/bin/pinentry-tty", "GPG_TTY": terminal.name, "TERM": "vt100", "LANG": "C.UTF-8",
            ])
        #expect(try agent.readLine() == "ready")
        let typed = "canary \(UUID().uuidString)"
        #expect(
            BackgroundThread.start {
                for entry in [typed, typed, Self.passcode] where terminal.wait(for: "Passcode:") != nil { terminal.type(entry + "\n") }
            })
        #expect(try service.client().value(of: "safe", nil) == "12345")
        let left = try ProcessMemory.finds([typed, Self.passcode].map { Array($0.utf8) }, in: agent.processID)
        #expect(left == [])
    }
}
