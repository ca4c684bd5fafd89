// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainTestSupport
import Testing

/// A small file system in memory, in a mount namespace that ends with its process tree.
private enum SmallDisk {
    /// Arguments of unshare(1).
    ///
    /// Users other than root also need a user namespace, where that is allowed.
    static let unshare = geteuid() == 0 ? ["--mount"] : ["--mount", "--map-root-user"]

    static let obstacle: String? = {
        let run = try? ChildProcess.run(
            "unshare", unshare + ["mount", "-t", "tmpfs", "none", "/tmp"], environment: ["PATH": "/usr/bin:/bin"])
        return run?.ending == .exited(0) ? nil : "no small file system can be mounted here"
    }()
}

@Suite("A full disk", .blocking, .enabled(if: SmallDisk.obstacle == nil, "\(SmallDisk.obstacle ?? "")"))
struct FullDiskTests {
    private static let diskByteCount = 4 << 20

    /// Runs a shell script in a mount namespace of its own.
    ///
    /// `$disk` is a file system with `byteCount` free bytes, `$child` the tests' child.
    ///
    /// `make_room` frees more.
    private func run(byteCount: Int, _ script: String) throws -> [Substring] {
        try withTemporaryDirectory { directory in
            let run = try ChildProcess.run(
                "unshare",
                SmallDisk.unshare + [
                    "/bin/sh", "-euc",
                    """
                    mount -t tmpfs -o mode=700,size=\(Self.diskByteCount) none "$disk"
                    head -c \(Self.diskByteCount - byteCount) /dev/zero >"$disk/filler"
                    make_room() { rm -f "$disk"/filler*; }
                    export KEYCHAIN_HOME="$disk/home"
                    \(script)
                    """,
                ],
                environment: [
                    "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "disk": directory, "child": BuiltProgram.path(of: "KeychainTestChild"),
                ])
            #expect(run.ending == .exited(0), "\(run.output)")
            return run.output.split(separator: "\n")
        }
    }

    @Test(
        "Creating a keychain on a full disk fails with the cause diskFull, and a later creation succeeds",
        arguments: [4_096, 8_192, 16_384, 32_768, 49_152, 65_536, 81_920, 98_304, 131_072])
    func creation(byteCount: Int) throws {
        let answers = try run(
            byteCount: byteCount,
            """
            "$child" attempt add
            find "$disk" -name 'keychain.db' -size 0
            make_room
            "$child" attempt add read
            find "$disk" -name '.keychain.db*'
            """)
        try #require(answers.count == 3, "\(answers)")
        #expect(
            answers[0] == "0 add" || (answers[0].hasPrefix("-25291 ") && answers[0].contains("full") && answers[0].contains("/home")),
            "\(answers[0])")
        #expect(answers.dropFirst().elementsEqual(["0 add", "0 read"]))
    }

    @Test("Storing on a full disk fails with the cause diskFull, stored items stay readable, and storing succeeds once there is space")
    func storing() throws {
        let answers = try run(
            byteCount: 1 << 20,
            """
            "$child" attempt add
            cat /dev/zero >"$disk/filler2" 2>/dev/null || true
            "$child" attempt add read
            make_room
            "$child" attempt add read
            """)
        try #require(answers.count == 5, "\(answers)")
        #expect(answers[0] == "0 add")
        // Not even the files beside the database can be created.
        #expect(answers[1].hasPrefix("-25291 ") || answers[1].hasPrefix("-36 "), "\(answers[1])")
        #expect(!answers[2].hasPrefix("-25300"), "\(answers[2])")
        #expect(answers[3...].elementsEqual(["0 add", "0 read"]))
    }

    @Test("No acknowledged write is lost when the disk becomes full")
    func filling() throws {
        let answers = try run(
            byteCount: 1 << 20,
            """
            "$child" acknowledged-sets 100000 full 2>&1 | grep -v warning | tail -n 2
            make_room
            "$child" attempt count
            """)
        try #require(answers.count == 3, "\(answers)")
        let acknowledgedCount = try #require(Int(answers[0].dropFirst("ack ".count))) + 1
        #expect(answers[1].hasPrefix("failed "))
        // The failed write may be present too.
        #expect(["0 count \(acknowledgedCount)", "0 count \(acknowledgedCount + 1)"].contains(answers[2]), "\(answers)")
    }
}
