// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainPeers
import KeychainSystem
import Testing

@testable import keychain_peer

@Suite("Whose code a process has mapped")
struct MappedCodeTests {
    /// A program of root.
    private let path: String
    private let status: FileStatus

    init() throws {
        path = try FileSystem.resolve("/bin/true")
        status = try FileStatus(of: path)
    }

    private func line(
        _ permissions: String = "r-xp", path: String? = nil, inode: UInt64? = nil, device: (major: UInt64, minor: UInt64)? = nil
    ) -> String {
        let number = status.identity.device
        let device = device ?? ((number >> 8) & 0xFFF | (number >> 32) & ~0xFFF, number & 0xFF | (number >> 12) & ~0xFF)
        let numbers = [device.major, device.minor].map { String($0, radix: 16) }.joined(separator: ":")
        return "55755b1a3000-55755b1a8000 \(permissions) 00002000 \(numbers) \(inode ?? status.identity.inode)    \(path ?? self.path)"
    }

    private func isOfRoot(_ lines: String...) -> Bool {
        ProgramFacts.isCodeOfRoot(Array((lines.joined(separator: "\n") + "\n").utf8), of: status, at: path, inRoot: "")
    }

    @Test("Code of root's files, memory without a file, and data of all files are no obstacle")
    func root() {
        #expect(isOfRoot(line()))
        #expect(isOfRoot(line(), "7ffc0000-7ffc1000 r-xp 00000000 00:00 0                  [vdso]", "7f00-7f01 rwxp 00000000 00:00 0"))
        #expect(isOfRoot(line(), line("rw-p", path: "/home/alice/file", inode: 7)))
    }

    @Test("Without a file nothing is known")
    func none() {
        #expect(!isOfRoot())
        #expect(!isOfRoot("7f00-7f01 rwxp 00000000 00:00 0"))
    }

    @Test("A file system may show another device than stat, for all of its files the same one")
    func otherDevice() throws {
        let other = try FileSystem.resolve("/bin/false")
        let inode = try FileStatus(of: other).identity.inode
        #expect(isOfRoot(line(device: (0, 99)), line(path: other, inode: inode, device: (0, 99))))
        #expect(!isOfRoot(line(device: (0, 99)), line(path: other, inode: inode, device: (0, 98))))
        #expect(!isOfRoot(line(), line(path: other, inode: inode, device: (0, 99))))
    }

    @Test("Code of another file at the path, of a file that is gone, or of one that its user can change is not root's")
    func others() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
        try #require(FileManager.default.createFile(atPath: file, contents: nil, attributes: [.posixPermissions: 0o666]))
        defer { try? FileManager.default.removeItem(atPath: file) }
        #expect(!isOfRoot(line(), line(path: file, inode: try FileStatus(of: file).identity.inode)))
        #expect(!isOfRoot(line(), line(inode: status.identity.inode + 1)))
        #expect(!isOfRoot(line(), line(path: "/memfd:code (deleted)", inode: 7)))
        #expect(!isOfRoot(line(), line(path: path + " (deleted)")))
        #expect(!isOfRoot(line(), line(path: "")))
    }

    @Test(
        "A line that is no mapping makes everything unknown",
        arguments: ["x", "55-56 r-xp 0 fe00 7 /bin/true", "55-56 rx 0 fe:00 7 /bin/true"])
    func malformed(line text: String) {
        #expect(!isOfRoot(line(), text))
    }
}
