// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Testing

@testable import ValetCLI

/// A private message bus that starts the keyring when a program needs it, for the command `valet secret-service`.
final class ActivatingBus: TestBus {
    static let name = "org.freedesktop.secrets"

    let home: String
    /// Variables of the session that `valet` and the keyring have besides the usual ones.
    var variables: [String: String] = [:]
    /// The files by which the system, and not the user, has a keyring started.
    let systemServices: String
    private let homeDirectory: TemporaryDirectory
    private let busDirectory: TemporaryDirectory
    private let bus: ChildProcess
    private var keyring: ChildProcess?

    /// Starts the bus, with files of the user if `searchesHome`.
    init(searchesHome: Bool = true) throws {
        homeDirectory = try TemporaryDirectory(inMemory: true)
        busDirectory = try TemporaryDirectory()
        home = homeDirectory.path
        systemServices = busDirectory.path + "/services"
        try FileManager.default.createDirectory(atPath: systemServices, withIntermediateDirectories: true)
        let user = searchesHome ? "<servicedir>\(home)/.local/share/dbus-1/services</servicedir>" : ""
        let configuration = """
            <busconfig><type>session</type><listen>unix:path=\(busDirectory.path)/bus</listen><auth>EXTERNAL</auth>
            \(user)<servicedir>\(systemServices)</servicedir>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
            </busconfig>
            """
        try configuration.write(toFile: busDirectory.path + "/bus.conf", atomically: true, encoding: .utf8)
        bus = try ChildProcess(
            "dbus-daemon", ["--config-file=\(busDirectory.path)/bus.conf", "--nofork", "--print-address"],
            environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "XDG_RUNTIME_DIR": home])
        _ = try bus.readLine()
    }

    deinit { (try? Desktop.keychain(home: home))?.forgetKeys() }

    var environment: [String: String] {
        [
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "XDG_RUNTIME_DIR": home, "KEYCHAIN_HOME": home,
            "XDG_CONFIG_DIRS": home + "/no-system-configuration", "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(busDirectory.path)/bus",
        ].merging(variables) { $1 }
    }

    /// Runs `valet secret-service`.
    func valet(_ arguments: String...) throws -> (ending: ChildProcess.Ending, output: String) {
        // The built program is not installed.
        let program = arguments.first == "enable" ? ["--program", try BuiltProgram.path(of: "keychain-secret-service")] : []
        return try run(try BuiltProgram.path(of: "valet"), ["secret-service"] + arguments + program)
    }

    /// Runs `valet secret-service enable` of another installation, whose keyring never becomes the keyring.
    func enableBrokenInstallation() throws -> (ending: ChildProcess.Ending, output: String) {
        let directory = home + "/broken"
        // By other processes: a child of this one that has a file open for writing would keep it from being executed.
        let setUp = """
            mkdir -p "$1" && cp "$2" "$1/valet" && printf '#!/bin/sh\n[ "$1" = --check ]\n' > "$1/keychain-secret-service" &&
                chmod 755 "$1/keychain-secret-service"
            """
        try #require(
            try ChildProcess.run("/bin/sh", ["-c", setUp, "sh", directory, try BuiltProgram.path(of: "valet")]).ending == .exited(0))
        return try run(directory + "/valet", ["secret-service", "enable"])
    }

    func run(_ valet: String, _ arguments: [String]) throws -> (ending: ChildProcess.Ending, output: String) {
        let child = try ChildProcess("/bin/sh", ["-c", "exec \"$0\" \"$@\" 2>&1", valet] + arguments, environment: environment)
        child.closeInput()
        let output = try child.readToEnd()
        return (try child.waitUntilEnded(), output)
    }

    var address: LocalSocket.Address { .path(busDirectory.path + "/bus") }

    func connect() throws -> DBusConnection { try DBusConnection([address], timeoutMilliseconds: 60_000) }

    /// Connects a program, for which the bus starts a keyring if none runs.
    func client() throws -> SecretClient { try SecretClient(try connect(), of: self) }

    /// The process that is the keyring; nil if none runs.
    func keyringProcess() throws -> Int32? {
        do {
            let reply = try busCall("GetConnectionUnixProcessID", [.text(Self.name)], "s")
            guard case .number(let number)? = reply.first else { return nil }
            return Int32(number)
        } catch DBusFailure.error("org.freedesktop.DBus.Error.NameHasNoOwner") {
            return nil
        }
    }

    func busCall(_ member: String, _ arguments: [DBusValue], _ signature: String, _ connection: DBusConnection? = nil) throws -> [DBusValue]
    {
        try (connection ?? connect()).call(
            "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", member, arguments,
            signature: signature)
    }

    /// Starts GNOME Keyring with a new keyring that is unlocked, as a login does, and lets the bus start it later.
    func startGNOMEKeyring() throws {
        let file = "[D-BUS Service]\nName=\(Self.name)\nExec=/usr/bin/gnome-keyring-daemon --start --foreground --components=secrets\n"
        try file.write(toFile: "\(systemServices)/\(Self.name).service", atomically: true, encoding: .utf8)
        _ = try busCall("ReloadConfig", [], "")
        let started = try ChildProcess(
            "gnome-keyring-daemon", ["--unlock", "--components=secrets", "--foreground"], environment: environment)
        started.send(Desktop.passcode)
        started.closeInput()
        keyring = started
        try #require(waitUntil { (try? self.keyringProcess()) == started.processID })
    }

    /// Waits until the GNOME Keyring of `startGNOMEKeyring` has ended.
    func waitForEndOfGNOMEKeyring() throws { _ = try keyring?.waitUntilEnded() }

    /// Starts a program that is to be the keyring, and waits until it has the name.
    func startKeyring(_ path: String, _ arguments: [String] = [], input: [String] = []) throws -> ChildProcess {
        let started = try ChildProcess(path, arguments, environment: environment)
        for line in input { started.send(line) }
        started.closeInput()
        try #require(waitUntil { (try? self.keyringProcess()) == started.processID })
        return started
    }

    // MARK: Files

    /// The files below the home directory that belong to the configuration of the session, with their contents.
    func files() throws -> [String: String] {
        var files: [String: String] = [:]
        for directory in [".config", ".local/share/dbus-1"] {
            let names = FileManager.default.enumerator(atPath: "\(home)/\(directory)")?.compactMap { $0 as? String } ?? []
            for name in names {
                let path = "\(directory)/\(name)"
                if let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(home)/\(path)") {
                    files[path] = "link to \(target)"
                } else {
                    files[path] = (try? String(contentsOfFile: "\(home)/\(path)", encoding: .utf8)) ?? "a directory"
                }
            }
        }
        return files
    }

    func write(_ text: String, to path: String) throws {
        let path = "\(home)/\(path)"
        try FileManager.default.createDirectory(
            atPath: URL(filePath: path).deletingLastPathComponent().path, withIntermediateDirectories: true)
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }
}
#endif
