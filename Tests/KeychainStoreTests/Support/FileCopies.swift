// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// What was in a directory at one moment, copied by another process: reading a database here would drop this process's locks on it.
///
/// It is also what a process that is killed at that moment leaves behind.
struct FileCopies {
    let directory: TemporaryDirectory

    init(of source: TemporaryDirectory) throws {
        directory = try TemporaryDirectory()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/cp")
        process.arguments = ["-p", "-r", source.path + "/.", directory.path]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }

    /// How many pieces of `secret`, of eight bytes and from any place in it, are found anywhere.
    func pieces(of secret: [UInt8]) throws -> Int {
        let wanted = Set(Self.pieces(secret))
        return try directory.contents.values.reduce(0) { count, data in
            count + Self.pieces([UInt8](data)).count { wanted.contains($0) }
        }
    }

    private static func pieces(_ bytes: [UInt8]) -> [UInt64] {
        var piece: UInt64 = 0
        var pieces: [UInt64] = []
        for (position, byte) in bytes.enumerated() {
            piece = piece << 8 | UInt64(byte)
            if position >= 7 { pieces.append(piece) }
        }
        return pieces
    }
}
