// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Testing

@Suite("Creating private directories", .blocking)
struct PrivateDirectoryTests {
    private static let otherUser: UInt32 = 61_301

    private func mode(_ path: String) throws -> UInt32 { try FileStatus(of: path).permissions }

    @Test(
        "A new directory that is replaced by a link or by another user's directory is not used, and the target is unchanged",
        arguments: [0, 1])
    func replacement(level: Int) throws {
        try withTemporaryDirectory { directory in
            let victim = directory + "/victim"
            try FileManager.default.createDirectory(
                atPath: victim, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
            let names = ["a", "b"]
            var replaced = 0
            #expect(throws: KeychainFailure(.notAvailable, "")) {
                try PrivateDirectory.make(directory + "/a/b") { path in
                    guard path.hasSuffix("/" + names[level]) else { return }
                    replaced += 1
                    // The paths are copied for the calls.
                    _ = unsafe rename(path, path + " moved")
                    _ = unsafe symlink(victim, path)
                }
            }
            #expect(replaced == 1)
            #expect(try mode(victim) == 0o755)
            #expect(try FileManager.default.contentsOfDirectory(atPath: victim).isEmpty)
        }
    }

    @Test("Nothing is created in a directory of another user", .requiresRoot)
    func otherUsersDirectory() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            try FileManager.default.createDirectory(
                atPath: home, withIntermediateDirectories: false, attributes: [.ownerAccountID: Self.otherUser])
            let before = try FileSnapshot(of: directory)
            let keychain = LocalKeychain(home: home + "/.local/share/keychain")
            let failure = #expect(throws: KeychainFailure.self) { try keychain.addItem("Skroob", "12345") }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.reason.contains(home) == true)
            #expect(try FileSnapshot(of: directory) == before)
        }
    }

    @Test("A directory of root can contain the keychain of a user who may write there", .requiresRoot)
    func rootsDirectory() throws {
        try withTemporaryDirectory { directory in
            // The path is copied for the call.
            try #require(unsafe chmod(directory, 0o1777) == 0)
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "KeychainTestChild"), ["attempt", "--as-user", String(Self.otherUser), "add", "read"],
                environment: ["KEYCHAIN_HOME": directory + "/one/two"])
            #expect(run.output == "0 add\n0 read\n")
        }
    }

    @Test("A link in the existing part of the path is followed")
    func existingLink() throws {
        try withTemporaryDirectory { directory in
            try FileManager.default.createDirectory(atPath: directory + "/disk", withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(atPath: directory + "/link", withDestinationPath: directory + "/disk")
            try PrivateDirectory.make(directory + "/link/a/b")
            #expect(try mode(directory + "/disk/a/b") == 0o700)
        }
    }

    @Test("The umask does not restrict the owner", arguments: ["0777", "0277", "0700", "0000"])
    func umask(mask: String) throws {
        try withTemporaryDirectory { directory in
            var arguments = ["attempt", "add", "read"]
            if geteuid() == 0 {
                arguments.insert(contentsOf: ["--as-user", String(Self.otherUser)], at: 1)
                // The path is copied for the call.
                try #require(unsafe chmod(directory, 0o1777) == 0)
            }
            let run = try ChildProcess.run(
                "/bin/sh", ["-c", "umask \(mask); exec \"$@\"", "sh", BuiltProgram.path(of: "KeychainTestChild")] + arguments,
                environment: ["KEYCHAIN_HOME": directory + "/one/two"])
            #expect(run.output == "0 add\n0 read\n")
            for name in ["/one", "/one/two", "/one/two/keys"] { #expect(try mode(directory + name) == 0o700) }
        }
    }
}
