// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// A small file system in memory, mounted on a directory for one test.
final class TemporaryMount: Sendable {
    let directory: TemporaryDirectory

    /// Whether this process may mount at all: root outside most containers.
    static let isPossible: Bool = {
        guard geteuid() == 0, let directory = try? TemporaryDirectory() else { return false }
        guard run("/bin/mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none", directory.path) else { return false }
        return run("/bin/umount", directory.path)
    }()

    init(byteCount: Int) throws {
        directory = try TemporaryDirectory()
        guard Self.run("/bin/mount", "-t", "tmpfs", "-o", "size=\(byteCount),mode=0700", "none", directory.path) else {
            throw CocoaError(.fileWriteUnknown)
        }
    }

    deinit { _ = Self.run("/bin/umount", "--lazy", directory.path) }

    func makeReadOnly() throws {
        guard Self.run("/bin/mount", "-o", "remount,ro", directory.path) else { throw CocoaError(.fileWriteUnknown) }
    }

    func makeWritable() throws {
        guard Self.run("/bin/mount", "-o", "remount,rw", directory.path) else { throw CocoaError(.fileWriteUnknown) }
    }

    private static func run(_ path: String, _ arguments: String...) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        do { try process.run() } catch { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
