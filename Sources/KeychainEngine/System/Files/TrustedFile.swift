// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import Glibc
internal import KeychainCore

/// A file that somebody else wrote: read whole, if it is a file, and not too large.
enum RegularFile {
    /// Nil when it cannot be read, is larger, or is something that one could wait for, such as a pipe or a device.
    static func contents(atPath path: String, byteLimit: Int) -> Data? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var information = stat()
        // `information` is ours and outlives the call.
        guard unsafe fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
        var contents = [UInt8](repeating: 0, count: min(max(0, Int(information.st_size)), byteLimit) + 1)
        var filled = 0
        while filled < contents.count {
            // The rest of the buffer, and its size.
            let count = unsafe contents.withUnsafeMutableBytes { buffer in
                unsafe read(descriptor, buffer.baseAddress?.advanced(by: filled), buffer.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return Data(contents.prefix(filled)) }
            filled += count
        }
        // More than it had when it was asked, or more than is allowed.
        return nil
    }
}

/// The administrator's file.
enum PolicyFile {
    /// What is in it; nil where there is none.
    ///
    /// Throws `.notAvailable` when that cannot be said.
    static func contents(atPath path: String, byteLimit: Int, acceptsOwnFile: Bool) throws(KeychainFailure) -> Data? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT || code == ENOTDIR, try isAbsent(path) { return nil }
            throw PrivateFile.readFailure(code, "the policy", path)
        }
        defer { close(descriptor) }
        try requireTrusted(descriptor, path, acceptsOwnFile: acceptsOwnFile)
        var contents = [UInt8](repeating: 0, count: byteLimit + 1)
        var filled = 0
        while filled < contents.count {
            // The rest of the buffer, and its size.
            let count = unsafe contents.withUnsafeMutableBytes { buffer in
                unsafe read(descriptor, buffer.baseAddress?.advanced(by: filled), buffer.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw PrivateFile.readFailure(errno, "the policy", path) }
            if count == 0 { break }
            filled += count
        }
        guard filled <= byteLimit else { throw KeychainFailure(.notAvailable, "the policy \(path) is larger than \(byteLimit) bytes") }
        return Data(contents.prefix(filled))
    }

    /// A link that leads nowhere was put there on purpose: that is not the same as nothing.
    private static func isAbsent(_ path: String) throws(KeychainFailure) -> Bool {
        for place in [path, PrivateFile.directory(of: path)] {
            var information = stat()
            // `information` is ours and outlives the calls.
            if unsafe lstat(place, &information) == 0 {
                guard information.st_mode & S_IFMT == S_IFLNK, unsafe stat(place, &information) != 0 else { continue }
                throw KeychainFailure(.notAvailable, "the policy \(path) cannot be read: \(place) is a link that leads nowhere")
            }
            let code = errno
            guard code == ENOENT || code == ENOTDIR else { throw PrivateFile.readFailure(code, "the policy", path) }
        }
        return true
    }

    /// Throws for a file that another than the administrator can have written.
    private static func requireTrusted(_ descriptor: Int32, _ path: String, acceptsOwnFile: Bool) throws(KeychainFailure) {
        var information = stat()
        // As above.
        guard unsafe fstat(descriptor, &information) == 0 else { throw PrivateFile.readFailure(errno, "the policy", path) }
        guard information.st_mode & S_IFMT == S_IFREG else {
            throw KeychainFailure(.notAvailable, "the policy \(path) is not a regular file")
        }
        let owner = information.st_uid
        // In a user namespace that does not have the machine's root, he is shown as nobody.
        let isRoot = owner == 0 || (owner == nobody && !UserNamespace.isInitial)
        guard isRoot || (acceptsOwnFile && owner == geteuid()) else {
            throw KeychainFailure(.notAvailable, "the policy \(path) does not belong to root: run chown root on it")
        }
        guard information.st_mode & 0o022 == 0 else {
            throw KeychainFailure(.notAvailable, "the policy \(path) can be changed by others: run chmod go-w on it")
        }
    }

    private static let nobody: uid_t = 65_534
}
