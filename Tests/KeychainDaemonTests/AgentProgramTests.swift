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
        let pinentry = try ScriptedProgram("say OK", "until GETPIN", "say D \(Self.passcode)", "say OK")
        let client = service.client(launcher: launcher(service, pinentry.path, ["DISPLAY": ":nowhere"]))
        #expect(try client.value(of: "safe", "the test") == "12345")
        let log = pinentry.log
        #expect(log.contains("An unverified program (process \(CurrentProcess.id)) wants to read an item that you protected."), "\(log)")
        #expect(log.contains("the test"))
    }

    @Test("pinentry-tty asks on the terminal that the program names")
    func terminal() throws {
        let service = try service()
        let terminal = try PseudoTerminal()
        let launcher = launcher(service, "/usr/bin/pinentry-tty", ["GPG_TTY": terminal.name, "TERM": "vt100", "LANG": "C.UTF-8"])
        #expect(
            BackgroundThread.start {
                for entry in ["wrong", Self.passcode] where terminal.waits(for: "Passcode:") { terminal.type(entry + "\n") }
            })
        #expect(try service.client(launcher: launcher).value(of: "safe", nil) == "12345")
    }

    @Test("An agent that does not start, or a pinentry program that dies, fails the call", arguments: ["missing", "dying"])
    func failures(kind: String) throws {
        let service = try service()
        let pinentry = try ScriptedProgram("say OK", "until GETPIN", "die")
        let path = kind == "missing" ? "/nowhere/pinentry" : pinentry.path
        let client = service.client(launcher: launcher(service, path, ["DISPLAY": ":nowhere"]))
        #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try client.value(of: "safe", nil) }
    }

    @Test("The memory of an agent has neither a passcode after its prompt nor a value or a key", .requiresRoot)
    func memory() throws {
        let service = try service()
        let terminal = try PseudoTerminal()
        let agent = try ChildProcess(
            BuiltProgram.path(of: "keychain-agent"), ["--socket", service.path],
            environment: [
                "KEYCHAIN_PINENTRY": "/usr/bin/pinentry-tty", "GPG_TTY": terminal.name, "TERM": "vt100", "LANG": "C.UTF-8",
            ])
        #expect(try agent.readLine() == "ready")
        let typed = "canary \(UUID().uuidString)"
        #expect(
            BackgroundThread.start {
                for entry in [typed, typed, Self.passcode] where terminal.waits(for: "Passcode:") { terminal.type(entry + "\n") }
            })
        #expect(try service.client().value(of: "safe", nil) == "12345")
        let left = try ProcessMemory.finds([typed, Self.passcode].map { Array($0.utf8) }, in: agent.processID)
        #expect(left == [])
    }
}

/// A pinentry program with scripted behavior, in its own folder.
private struct ScriptedProgram {
    let path: String
    private let folder: TemporaryDirectory

    /// The program is `ScriptedPinentry`.
    init(_ steps: String...) throws {
        folder = try TemporaryDirectory()
        path = folder.path + "/pinentry-\(UInt32.random(in: 0...999_999))"
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: try BuiltProgram.path(of: "KeychainTestChild"))
        try steps.joined(separator: "\n").write(toFile: path + ".script", atomically: true, encoding: .utf8)
    }

    /// The environment, and the requests.
    var log: String { (try? String(contentsOfFile: path + ".log", encoding: .utf8)) ?? "" }
}

/// A terminal whose other end is the test.
private final class PseudoTerminal: Sendable {
    // Of <asm-generic/ioctls.h>, which the C library's module leaves out.
    private static let unlock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430

    struct Unavailable: Error {}

    let name: String
    private let screen: Int32
    /// Keeps the terminal while no program has it open.
    private let keeper: Int32

    init() throws {
        // All pointers here are used during the calls only.
        screen = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var number: UInt32 = 0
        var isLocked: Int32 = 0
        guard screen >= 0, unsafe ioctl(screen, Self.unlock, &isLocked) == 0, unsafe ioctl(screen, Self.getNumber, &number) == 0 else {
            throw Unavailable()
        }
        name = "/dev/pts/\(number)"
        keeper = unsafe open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
    }

    deinit {
        close(keeper)
        close(screen)
    }

    /// Returns whether the text is shown before the time of a test is over.
    func waits(for text: String) -> Bool {
        let deadline = Date(timeIntervalSinceNow: 60)
        var shown = ""
        while Date() < deadline {
            var request = pollfd(fd: screen, events: Int16(POLLIN), revents: 0)
            var chunk = [UInt8](repeating: 0, count: 4_096)
            // One request, which is ours; as many bytes as the buffer has.
            guard unsafe poll(&request, 1, 1_000) > 0 else { continue }
            let count = unsafe read(screen, &chunk, chunk.count)
            guard count > 0 else { return false }
            shown += String(decoding: chunk.prefix(count), as: UTF8.self)
            if shown.contains(text) { return true }
        }
        return false
    }

    func type(_ text: String) {
        // The string lives until the call returns.
        _ = unsafe write(screen, text, text.utf8.count)
    }
}
