// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainTestSupport
import Testing

@Suite("Programs with privileges that their caller lacks", .blocking, .requiresSetuidPrograms)
struct PrivilegedProgramTests {
    @Test("A privileged program ignores its environment", arguments: Privilege.installed)
    func settings(privilege: Privilege) throws {
        let program = try PrivilegedProgram(privilege)
        let home = privilege.hasOwnersKeychain ? program.ownerHome : program.callerHome
        #expect(
            try program.run(["print-settings"]) == [
                "store \(home)/.local/share/keychain/keychain.db",
                "keys \(home)/.local/state/keychain",
                "protector default",
                "credentials none",
                "tpm device:/dev/tpmrm0",
                "pinentry automatic",
                "prompt variables HOME",
                "identifier program",
                "holder processMemory",
            ])
    }

    @Test("The same program without privileges obeys its environment")
    func unprivileged() throws {
        let program = try PrivilegedProgram(nil)
        let directory = program.callersDirectory
        let settings = try program.run(["print-settings"])
        #expect(
            settings.prefix(8) == [
                "store \(directory)/keychain.db",
                "keys \(directory)/keys",
                "protector tpm2",
                "credentials \(directory)",
                "tpm cmd:\(directory)/command",
                "pinentry program(\"\(directory)/pinentry\")",
                "prompt variables DISPLAY GPG_TTY HOME XDG_DATA_HOME XDG_STATE_HOME",
                "identifier named",
            ])
    }

    @Test("A privileged program runs no pinentry program of its caller", arguments: [Privilege.setuid, .setgid])
    func pinentry(privilege: Privilege) throws {
        let program = try PrivilegedProgram(privilege)
        let answers = try program.run(["ask", "configured", "passcode", "1", "/etc/passwd", "own-session"])
        #expect(answers.first == "can ask false")
        #expect(!FileManager.default.fileExists(atPath: program.callersDirectory + "/pinentry-ran"))
    }

    @Test("The caller's pinentry program leaves its trace when it runs")
    func pinentryTrace() throws {
        let program = try PrivilegedProgram(nil)
        _ = try program.run(["ask", "configured", "passcode", "1", "/etc/passwd", "own-session"])
        #expect(FileManager.default.fileExists(atPath: program.callersDirectory + "/pinentry-ran"))
    }

    @Test("A privileged program stores items in its own user's home and unlocks them for itself only", .requiresKeyctl)
    func unlocking() throws {
        let program = try PrivilegedProgram(.setuid)
        let child = try program.start(["stay-unlocked", "a long passcode"])
        #expect(try child.readLine() == "unlocked")
        let keyring = try program.run(["show", "@u"], executable: "/usr/bin/keyctl").joined(separator: "\n")
        #expect(!keyring.contains("keychain"))
        child.closeInput()
        #expect(try child.waitUntilEnded() == .exited(0))
        #expect(try FileSnapshot(of: program.ownerHome).names.contains(".local/share/keychain/keychain.db"))
        #expect(try FileSnapshot(of: program.callerHome).names.isEmpty)
        #expect(try FileSnapshot(of: program.callersDirectory).names == ["command", "entitlements", "pinentry"])
    }

    @Test("valet runs no command with privileges that its caller lacks", arguments: [Privilege.setuid, .setgid])
    func valetRun(privilege: Privilege) throws {
        let program = try PrivilegedProgram(privilege, name: "valet")
        #expect(try program.run(["set", "key", "--value-from-nowhere"], endings: [2]).isEmpty == false)
        let output = try program.run(["run", "--", "/usr/bin/touch", program.callersDirectory + "/ran"], endings: [3])
        #expect(!output.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: program.callersDirectory + "/ran"))
    }
}

/// How a program gets its privileges.
enum Privilege: CaseIterable, CustomTestStringConvertible {
    case setuid, setgid, fileCapability, effectiveUser

    /// Those that this machine can install.
    static var installed: [Privilege] {
        allCases.filter { $0 != .fileCapability || FileManager.default.isExecutableFile(atPath: PrivilegedProgram.setcap) }
    }

    /// Whether the effective user is the owner of the program, and not its caller.
    var hasOwnersKeychain: Bool { self == .setuid || self == .effectiveUser }

    var testDescription: String { "\(self)" }
}

/// A program that its caller starts with a hostile environment.
///
/// It runs in a mount namespace with a password database of its own.
private final class PrivilegedProgram {
    static let setcap = "/usr/sbin/setcap"
    private static let owner: UInt32 = 61_301
    private static let caller: UInt32 = 61_302

    private let directory: TemporaryDirectory
    private let privilege: Privilege?
    private var path: String { directory.path + "/program" }
    private var passwordDatabase: String { directory.path + "/passwd" }
    var ownerHome: String { directory.path + "/owner" }
    var callerHome: String { directory.path + "/caller" }
    /// The directory that the variables of the environment name.
    var callersDirectory: String { directory.path + "/hostile" }

    init(_ privilege: Privilege?, name: String = "KeychainTestChild") throws {
        self.privilege = privilege
        directory = try TemporaryDirectory()
        let manager = FileManager.default
        try manager.setAttributes([.posixPermissions: 0o755], ofItemAtPath: directory.path)
        for (home, user) in [(ownerHome, Self.owner), (callerHome, Self.caller), (callersDirectory, Self.caller)] {
            try manager.createDirectory(
                atPath: home, withIntermediateDirectories: false,
                attributes: [
                    .posixPermissions: home == callersDirectory ? 0o777 : 0o700, .ownerAccountID: user, .groupOwnerAccountID: user,
                ])
        }
        try write(
            """
            root:x:0:0::/root:/bin/sh
            owner:x:\(Self.owner):\(Self.owner)::\(ownerHome):/bin/sh
            caller:x:\(Self.caller):\(Self.caller)::\(callerHome):/bin/sh

            """, to: passwordDatabase, mode: 0o644)
        try write("#!/bin/sh\n: > '\(callersDirectory)/pinentry-ran'\n", to: callersDirectory + "/pinentry", mode: 0o755)
        try write("#!/bin/sh\n", to: callersDirectory + "/command", mode: 0o755)
        try write(
            "<plist><dict><key>application-identifier</key><string>named</string></dict></plist>",
            to: callersDirectory + "/entitlements", mode: 0o644)
        // Copied by another process: a child that another test starts meanwhile would inherit the file while it is open for writing, and
        // the system runs no such file.
        try #require(try ChildProcess.run("/bin/cp", [BuiltProgram.path(of: name), path]).ending == .exited(0))
        try install()
    }

    private func write(_ text: String, to path: String, mode: Int) throws {
        try #require(try ChildProcess.run("/bin/sh", ["-c", "printf %s \"$1\" > \"$2\"", "sh", text, path]).ending == .exited(0))
        let owner = path.hasPrefix(callersDirectory) ? Self.caller : 0
        try FileManager.default.setAttributes([.posixPermissions: mode, .ownerAccountID: owner], ofItemAtPath: path)
    }

    private func install() throws {
        // The path is copied for the calls. A change of the owner would drop the mode bits, so it comes first.
        let (user, group, mode): (UInt32, UInt32, mode_t) =
            switch privilege {
            case .setuid: (Self.owner, 0, 0o4755)
            case .setgid: (0, Self.owner, 0o2755)
            case .fileCapability, .effectiveUser, nil: (0, 0, 0o755)
            }
        try #require(unsafe chown(path, user, group) == 0 && chmod(path, mode) == 0)
        guard privilege == .fileCapability else { return }
        try #require(try ChildProcess.run(Self.setcap, ["cap_net_bind_service+ep", path]).ending == .exited(0))
    }

    /// Starts the program as the caller, in the hostile environment.
    func start(_ arguments: [String], executable: String? = nil) throws -> ChildProcess {
        var words = [executable ?? path] + arguments
        var prefix = ["/usr/bin/setpriv", "--reuid", "\(Self.caller)", "--regid", "\(Self.caller)", "--clear-groups"]
        if privilege == .effectiveUser {
            prefix = []
            words += ["--as-effective-user", "\(Self.owner)"]
        }
        let script = "/usr/bin/mount --bind \"$1\" /etc/passwd && shift && exec \"$@\""
        return try ChildProcess(
            "/usr/bin/unshare", ["-m", "/bin/sh", "-c", script, "sh", passwordDatabase] + prefix + words,
            environment: [
                "KEYCHAIN_HOME": callersDirectory, "KEYCHAIN_PINENTRY": callersDirectory + "/pinentry",
                "KEYCHAIN_PROTECTOR": "tpm2", "KEYCHAIN_TPM_TCTI": "cmd:\(callersDirectory)/command",
                "KEYCHAIN_ENTITLEMENTS": callersDirectory + "/entitlements", "CREDENTIALS_DIRECTORY": callersDirectory,
                "HOME": callersDirectory, "XDG_DATA_HOME": callersDirectory, "XDG_STATE_HOME": callersDirectory,
                "DISPLAY": ":61301", "GPG_TTY": "/dev/tty1",
            ])
    }

    /// Runs the program to its end, and returns the lines that it printed.
    func run(_ arguments: [String], executable: String? = nil, endings: [Int32] = [0]) throws -> [String] {
        let child = try start(arguments, executable: executable)
        child.closeInput()
        let output = try child.readToEnd()
        let ending = try child.waitUntilEnded()
        #expect(endings.map { .exited($0) }.contains(ending), "\(output)")
        return output.split(separator: "\n").map(String.init)
    }
}
