// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainTestSupport
import Testing

/// The states that an in-memory keychain does not have; ValetTests has the others.
@Suite("A failure of a typed call says why, in the real environment", .blocking)
struct FailureReasonTests {
    private static let child = try? BuiltProgram.path(of: "KeychainTestChild")

    /// Runs a shell script; `$child` makes typed calls, and `$home` is an empty directory.
    private func run(_ script: String, inMountNamespace: Bool = false) throws -> [String] {
        try withTemporaryDirectory { directory in
            let shell = ["/bin/sh", "-euc", script]
            let namespace = ["unshare"] + (geteuid() == 0 ? ["--mount"] : ["--mount", "--map-root-user"])
            let command = inMountNamespace ? namespace + shell : shell
            let run = try ChildProcess.run(
                command[0], Array(command.dropFirst()),
                environment: [
                    "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "home": directory, "KEYCHAIN_HOME": directory + "/home",
                    "KEYCHAIN_PINENTRY": "",
                    "child": Self.child ?? "",
                ])
            #expect(run.ending == .exited(0), "\(run.output)")
            // Lines of the log begin with a date.
            return run.output.split(separator: "\n").map(String.init).filter { $0 == "done" || $0.contains(" | ") }
        }
    }

    private static let canMount: Bool = {
        let unshare = geteuid() == 0 ? ["--mount"] : ["--mount", "--map-root-user"]
        let run = try? ChildProcess.run(
            "unshare", unshare + ["mount", "-t", "tmpfs", "none", "/tmp"], environment: ["PATH": "/usr/bin:/bin"])
        return run?.ending == .exited(0)
    }()

    @Test("A full disk", .enabled(if: canMount, "requires mount namespaces"))
    func fullDisk() throws {
        let lines = try run(
            """
            mount -t tmpfs -o mode=700,size=2m none "$home"
            "$child" typed-calls set
            cat /dev/zero >"$home/filler" 2>/dev/null || true
            "$child" typed-calls set
            """, inMountNamespace: true)
        try #require(lines.count == 2, "\(lines)")
        #expect(lines[0] == "done")
        #expect(lines[1] == "diskFull | -25291 | The disk is full. Free space on the disk of the keychain.")
    }

    @Test("A read-only file system: values are read and not stored", .enabled(if: canMount, "requires mount namespaces"))
    func readOnly() throws {
        let lines = try run(
            """
            mount -t tmpfs -o mode=700 none "$home"
            "$child" typed-calls set
            mount -o remount,ro "$home"
            "$child" typed-calls get set
            """, inMountNamespace: true)
        try #require(lines.count == 3, "\(lines)")
        #expect(lines[..<2] == ["done", "done"])
        #expect(lines[2].hasPrefix("readOnly | -25292 | The keychain is read-only: /"))
        #expect(lines[2].hasSuffix(". Make the directory of the keychain writable, or set KEYCHAIN_HOME to another one."))
    }

    @Test(
        "An environment that names no place",
        arguments: ["env KEYCHAIN_HOME=relative", "env -u KEYCHAIN_HOME -u HOME", "env -u KEYCHAIN_HOME HOME=relative"])
    func noPlace(_ environment: String) throws {
        let lines = try run("\(environment) \"$child\" typed-calls get")
        let line = "There is no place for the keychain. Set KEYCHAIN_HOME to an absolute path, or set HOME."
        #expect(lines.count == 1 && lines[0].hasPrefix("noPlace | ") && lines[0].hasSuffix(line), "\(lines)")
    }

    @Test("A variable with an unknown value is not a missing place")
    func unknownProtector() throws {
        let lines = try run("KEYCHAIN_PROTECTOR=bogus \"$child\" typed-calls set")
        try #require(lines.count == 1, "\(lines)")
        #expect(lines[0].hasPrefix("unavailable | -50 | The keychain is not available: "), "\(lines)")
        #expect(lines[0].contains("KEYCHAIN_PROTECTOR"), "the sentence names the cause")
    }

    @Test("A key file that is gone, and one that belongs to another keychain", arguments: ["rm", "replace"])
    func keyFile(_ change: String) throws {
        let lines = try run(
            """
            "$child" typed-calls set
            for key in "$home"/home/keys/*.key; do
                if [ \(change) = rm ]; then rm "$key"; else head -c "$(stat -c %s "$key")" /dev/urandom >"$key"; fi
            done
            "$child" typed-calls get set
            """)
        try #require(lines.count == 3, "\(lines)")
        #expect(lines[0] == "done")
        for line in lines[1...] { #expect(line.hasPrefix("protectorUnavailable | -25291 | "), "\(line)") }
    }

    @Test("A wrong credential")
    func credential() throws {
        let lines = try run(
            """
            mkdir -m 700 "$home/credentials"; head -c 32 /dev/urandom >"$home/credentials/keychain-device-secret"; chmod 600 "$home/credentials/keychain-device-secret"
            export CREDENTIALS_DIRECTORY="$home/credentials" KEYCHAIN_PROTECTOR=systemdCredential
            "$child" typed-calls set
            head -c 32 /dev/urandom >"$home/credentials/keychain-device-secret"
            "$child" typed-calls get
            rm "$home/credentials/keychain-device-secret"
            "$child" typed-calls get
            """)
        try #require(lines.count == 3, "\(lines)")
        #expect(lines[0] == "done")
        for line in lines[1...] {
            #expect(line.hasPrefix("protectorUnavailable | -25291 | The key of the keychain is not available: "), "\(line)")
        }
    }
}
