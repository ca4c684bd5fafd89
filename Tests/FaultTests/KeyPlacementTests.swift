// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Testing

/// A file system, as a probe reports it.
private struct ReportedFileSystem: Sendable, CustomTestStringConvertible {
    let number: UInt32
    let name: String?

    var testDescription: String { name ?? "unnamed" }

    static let ext4 = ReportedFileSystem(number: 0xEF53, name: "ext4")
    static let xfs = ReportedFileSystem(number: 0x5846_5342, name: "xfs")
    static let fuse = ReportedFileSystem(number: 0x6573_5546, name: "fuse.gocryptfs")
    static let overlay = ReportedFileSystem(number: 0x794C_7630, name: "overlay")
    static let tmpfs = ReportedFileSystem(number: 0x0102_1994, name: "tmpfs")
    static let ramfs = ReportedFileSystem(number: 0x8584_58F6, name: nil)
    static let overlayOnFUSE = ReportedFileSystem(number: 0x6573_5546, name: "fuse.fuse-overlayfs")

    static let lasting = [ext4, xfs, fuse]
    static let temporary = [overlay, tmpfs, ramfs, overlayOnFUSE]
}

@Suite("The key file of a new keychain on a file system that does not last", .blocking)
struct KeyPlacementTests {
    /// A keychain below two directories, which a probe reports to be on these file systems.
    private func withKeychain(
        _ data: ReportedFileSystem, _ state: ReportedFileSystem,
        _ body: (LocalKeychain, _ directory: String, _ configure: @escaping (inout KeychainConfiguration) -> Void) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            for name in ["data", "state"] {
                try FileManager.default.createDirectory(
                    atPath: "\(directory)/\(name)", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            }
            let fileSystem = { @Sendable (path: String) in path.hasPrefix(directory + "/state") ? state : data }
            let configure = { (configuration: inout KeychainConfiguration) in
                configuration.storePath = directory + "/data/share/keychain/keychain.db"
                configuration.keyDirectory = directory + "/state/keychain"
                configuration.storeOptions.fileSystem = FileSystemProbe(
                    typeNumber: { fileSystem($0).number }, typeName: { fileSystem($0).name })
            }
            try body(LocalKeychain(home: directory, configure: configure), directory, configure)
        }
    }

    @Test(
        "If the database would outlive the key file, no keychain is created, and the failure names the place of the key file",
        arguments: ReportedFileSystem.lasting, ReportedFileSystem.temporary)
    private func refused(data: ReportedFileSystem, state: ReportedFileSystem) throws {
        try withKeychain(data, state) { keychain, directory, _ in
            let before = try FileSnapshot(of: directory)
            let failure = #expect(throws: KeychainFailure.self) { try keychain.addItem("Skroob", "12345") }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.path == directory + "/state/keychain")
            #expect(failure?.subject == .keyFile)
            let name = state.name == ReportedFileSystem.overlayOnFUSE.name ? "fuse-overlayfs" : state.name ?? "ramfs"
            #expect(failure?.cause == .temporaryFileSystem(name: name))
            #expect(failure?.remedy == .useOneVolume)
            #expect(try FileSnapshot(of: directory) == before, "something was created")
            let placement = try #require(try keychain.report().placement)
            #expect(placement.losesKeyFirst)
            #expect(placement.store.directory == directory + "/data/share/keychain")
            #expect(placement.key.directory == directory + "/state/keychain" && placement.key.fileSystemName == name)
        }
    }

    @Test(
        "If both last, if both are temporary, or if the key file outlives the database, the keychain is created",
        arguments: [
            (ReportedFileSystem.ext4, .ext4), (.ext4, .xfs), (.fuse, .ext4), (.ext4, .fuse), (.tmpfs, .tmpfs), (.overlay, .overlay),
            (.tmpfs, .overlay), (.overlay, .ext4), (.tmpfs, .xfs),
        ] as [(ReportedFileSystem, ReportedFileSystem)])
    private func accepted(data: ReportedFileSystem, state: ReportedFileSystem) throws {
        try withKeychain(data, state) { keychain, _, _ in
            try keychain.addItem("Skroob", "12345")
            #expect(try keychain.secret(of: "Skroob") == "12345")
            let placement = try #require(try keychain.report().placement)
            #expect(!placement.losesKeyFirst)
            #expect(placement.store.fileSystemName == data.name && placement.key.fileSystemName == state.name)
        }
    }

    @Test("A file system of unknown type counts as lasting")
    func unknown() throws {
        try withKeychain(.ext4, .ext4) { _, directory, configure in
            let keychain = LocalKeychain(home: directory) { configuration in
                configure(&configuration)
                configuration.storeOptions.fileSystem = FileSystemProbe { $0.hasPrefix(directory + "/state") ? nil : 0xEF53 }
            }
            try keychain.addItem("Skroob", "12345")
        }
    }

    @Test("An existing keychain opens wherever its key file is, and the report says that the key file can be lost alone")
    func existing() throws {
        try withKeychain(.ext4, .ext4) { created, directory, configure in
            try created.addItem("Skroob", "12345")
            let keychain = LocalKeychain(home: directory) { configuration in
                configure(&configuration)
                configuration.storeOptions.fileSystem = FileSystemProbe { $0.hasPrefix(directory + "/state") ? 0x794C_7630 : 0xEF53 }
            }
            #expect(try keychain.secret(of: "Skroob") == "12345")
            try keychain.updateItem("Skroob", to: "54321")
            let report = try keychain.report()
            #expect(report.placement?.losesKeyFirst == true && report.placement?.key.isTemporary == true)
            #expect(report.placement?.store.isTemporary == false)
        }
    }

    @Test("With a systemd credential there is no key file to lose")
    func credential() throws {
        try withKeychain(.ext4, .overlay) { _, directory, configure in
            try FileManager.default.createDirectory(
                atPath: directory + "/credentials", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            try Data(repeating: 0x5A, count: 32).write(to: URL(filePath: directory + "/credentials/keychain-device-secret"))
            let keychain = LocalKeychain(home: directory) { configuration in
                configure(&configuration)
                configuration.credentialsDirectory = directory + "/credentials"
            }
            try keychain.addItem("Skroob", "12345")
            #expect(try keychain.report().placement == nil)
        }
    }
}

/// File systems that are mounted in a mount namespace of a child process.
private enum Mounts {
    static let canMountTmpfs = canMount("mount -t tmpfs none /tmp")
    static let canMountOverlay = canMount(
        "mount -t tmpfs none /tmp && mkdir /tmp/u /tmp/w /tmp/m && mount -t overlay none -o lowerdir=/usr,upperdir=/tmp/u,workdir=/tmp/w /tmp/m"
    )
    /// Whether a database in the temporary directory outlives a restart.
    static let temporaryDirectoryLasts =
        FileSystemProbe.system.temporaryFileSystemName(of: FileManager.default.temporaryDirectory.path) == nil

    static let unshare = geteuid() == 0 ? ["--mount"] : ["--mount", "--map-root-user"]

    private static func canMount(_ script: String) -> Bool {
        let run = try? ChildProcess.run(
            "unshare", unshare + ["/bin/sh", "-euc", script], environment: ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin"])
        return run?.ending == .exited(0)
    }
}

@Suite(
    "The key file of a new keychain on a mounted file system that does not last", .blocking,
    .enabled(if: Mounts.canMountTmpfs && Mounts.temporaryDirectoryLasts, "requires mount namespaces, and a temporary directory on a disk"))
struct MountedKeyPlacementTests {
    /// Runs a shell script in a mount namespace of its own, with XDG_DATA_HOME and XDG_STATE_HOME below `$top`.
    ///
    /// `overlay DIRECTORY` and `tmpfs DIRECTORY` mount a file system there.
    private func run(_ script: String) throws -> (output: [Substring], names: [String], directory: String) {
        try withTemporaryDirectory { directory in
            let run = try ChildProcess.run(
                "unshare",
                Mounts.unshare + [
                    "/bin/sh", "-euc",
                    """
                    mkdir -m 700 "$top/data" "$top/state"
                    tmpfs() { mount -t tmpfs -o mode=700 none "$1"; }
                    overlay() {
                        tmpfs "$1"
                        mkdir "$1/lower" "$1/upper" "$1/work"
                        mount -t overlay -o lowerdir="$1/lower",upperdir="$1/upper",workdir="$1/work" none "$1"
                        chmod 700 "$1"
                    }
                    \(script)
                    find "$top/data" "$top/state" -type f
                    """,
                ],
                environment: [
                    "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "top": directory, "child": BuiltProgram.path(of: "KeychainTestChild"),
                    "XDG_DATA_HOME": directory + "/data", "XDG_STATE_HOME": directory + "/state",
                ])
            #expect(run.ending == .exited(0), "\(run.output)")
            let lines = run.output.split(separator: "\n")
            return (
                lines.filter { !$0.hasPrefix("/") }, lines.filter { $0.hasPrefix("/") }.map { String($0.dropFirst(directory.count)) },
                directory
            )
        }
    }

    private func expectRefusal(_ name: String, _ script: String) throws {
        let run = try run(script)
        try #require(run.output.count == 1, "\(run.output)")
        let answer = run.output[0]
        #expect(answer.hasPrefix("-25291 path=\(run.directory)/state/keychain "), "\(answer)")
        #expect(answer.contains("cause=temporaryFileSystem(name: \"\(name)\") remedy=useOneVolume"), "\(answer)")
        #expect(run.names == [])
    }

    @Test("XDG_STATE_HOME on tmpfs: nothing is created")
    func tmpfs() throws {
        try expectRefusal("tmpfs", #"tmpfs "$top/state"; "$child" attempt add"#)
    }

    @Test("XDG_STATE_HOME in a container's layer: nothing is created", .enabled(if: Mounts.canMountOverlay, "requires overlayfs"))
    func overlay() throws {
        try expectRefusal("overlay", #"overlay "$top/state"; "$child" attempt add"#)
    }

    @Test("A directory that a symbolic link leads to counts, not the link")
    func symbolicLink() throws {
        try expectRefusal(
            "tmpfs", #"mkdir "$top/memory"; tmpfs "$top/memory"; ln -s "$top/memory" "$top/state/keychain"; "$child" attempt add"#)
    }

    @Test("Both on one tmpfs, both on the disk, and KEYCHAIN_HOME on a volume in a container's layer: the keychain is created")
    func together() throws {
        #expect(try run(#"tmpfs "$top"; mkdir -m 700 "$top/data" "$top/state"; "$child" attempt add read"#).output == ["0 add", "0 read"])
        #expect(try run(#""$child" attempt add read"#).output == ["0 add", "0 read"])
        let volume = #"mkdir -m 700 "$top/volume"; tmpfs "$top/state"; KEYCHAIN_HOME="$top/volume" "$child" attempt add read"#
        #expect(try run(volume).output == ["0 add", "0 read"])
    }
}
