// SPDX-License-Identifier: Apache-2.0
internal import Keybag
internal import KeychainSystem

/// The program `keychain-fprint-digest`: tells keychaind whether the fingers that a user has enrolled with fprintd are still the same.
///
/// Only root may read the prints. systemd starts it for each connection, with the connection as its standard input and output. It reads the
/// number of a user in four bytes, and answers with the digest of the user's prints in 32 bytes, or with nothing if they cannot be read.
@main
enum KeychainFprintDigest {
    private static let standardDirectory = "/var/lib/fprint"

    static func main() {
        ProcessHardening.apply()
        CurrentProcess.ignoreBrokenPipeSignal()
        guard let directory = directory() else { fail("usage: keychain-fprint-digest [--directory /PATH]", status: 64) }
        do throws(Errno) {
            let deadline = Deadline.after(seconds: 5)
            var number: [UInt8] = []
            while number.count < 4 {
                guard case .byte(let byte) = try FileDescriptor.standardInput.readByte(until: deadline) else { throw .timedOut }
                number.append(byte)
            }
            let user = number.reversed().reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
            guard let name = try UserDatabase.name(ofUser: user), !name.isEmpty, name != ".", name != "..", !name.contains("/") else {
                throw .notFound
            }
            let prints = try EnrolledPrints.files(ofUser: name, below: directory)
            // keychaind asks about enrolled fingers only. So the prints are elsewhere, and the digest of nothing would be another set.
            guard !prints.isEmpty else { throw .notFound }
            try FileDescriptor.standardOutput.writeAll(FingerprintDigest.ofPrints(prints))
        } catch {
            fail("keychain-fprint-digest cannot read the prints: \(error)", status: 1)
        }
    }

    private static func directory() -> String? {
        switch ProcessArguments.count {
        case 1: return standardDirectory
        case 3 where ProcessArguments.text(at: 1) == "--directory":
            guard let path = ProcessArguments.text(at: 2), path.hasPrefix("/") else { return nil }
            return path
        default: return nil
        }
    }

    private static func fail(_ reason: String, status: Int32) -> Never {
        try? FileDescriptor.standardError.writeAll("\(reason)\n".utf8)
        CurrentProcess.exit(with: status)
    }
}

/// The files of fprintd: `USER/DRIVER/DEVICE/FINGER`.
private enum EnrolledPrints {
    private static let largestDepth = 8
    private static let largestFileCount = 1_000
    private static let largestFileByteCount = 16 << 20

    /// Returns the regular files below the directory of a user.
    static func files(ofUser name: String, below path: String) throws(Errno) -> [(path: [UInt8], content: [UInt8])] {
        var files: [(path: [UInt8], content: [UInt8])] = []
        try add(try OpenDirectory(name, in: try OpenDirectory(path)), "", depth: 1, to: &files)
        return files
    }

    private static func add(
        _ directory: OpenDirectory, _ prefix: String, depth: Int, to files: inout [(path: [UInt8], content: [UInt8])]
    ) throws(Errno) {
        guard depth <= largestDepth else { throw .messageTooLong }
        var names: [String] = []
        try directory.forEachEntry { entry in
            names.append(entry.name)
            return names.count <= largestFileCount
        }
        for name in names {
            // One that is gone meanwhile is not part of the set.
            guard let status = try directory.status(of: name) else { continue }
            let path = prefix + name
            switch status.kind {
            case .directory: try add(try OpenDirectory(name, in: directory), path + "/", depth: depth + 1, to: &files)
            case .regularFile:
                let file = try directory.open(name)
                guard files.count < largestFileCount, let content = try file.descriptor.readToEnd(byteLimit: largestFileByteCount) else {
                    throw .messageTooLong
                }
                files.append((Array(path.utf8), content))
            // fprintd makes no others.
            default: continue
            }
        }
    }
}
