// SPDX-License-Identifier: Apache-2.0
internal import Glibc
package import KeychainCore

/// Files that another program or person wrote: the administrator's policy, a program's entitlements.
///
/// `subject` is the noun that errors begin with, such as "the policy".
package enum TrustedFile {
    /// The users whose file is accepted.
    package enum Owner: Equatable, Sendable {
        /// Everybody.
        case any
        /// The administrator. The file must not be writable by others.
        case root
        /// The administrator or the effective user. The file must not be writable by others.
        case rootOrCurrentUser
        /// The administrator or this user. The file must not be writable by everyone, and a symbolic link to it must have such an owner too.
        ///
        /// Nil: only the administrator.
        case rootOrUser(UInt32?)

        fileprivate var user: UInt32? {
            switch self {
            case .any, .root: nil
            case .rootOrCurrentUser: geteuid()
            case .rootOrUser(let user): user
            }
        }

        /// The mode bits that the file must not have.
        ///
        /// The group of a program's owner may write: many users have a group of their own, for which the umask allows it.
        fileprivate var forbiddenPermissions: UInt32 {
            if case .rootOrUser = self { 0o002 } else { 0o022 }
        }
    }

    /// The content of a regular file; nil only if the file is proved absent.
    ///
    /// Throws `.notAvailable` if the file cannot be read, is larger than `byteLimit`, is not a regular file, or belongs to another owner.
    package static func contents(
        _ path: String, byteLimit: Int, owner: Owner, subject: String
    ) throws(KeychainFailure) -> [UInt8]? {
        let file: OpenFile
        do throws(Errno) {
            file = try OpenFile(path, .read, followsLinks: true)
        } catch {
            if error == .notFound || error == .notDirectory, try isAbsent(path, subject) { return nil }
            throw PrivateFile.readFailure(error, subject, path)
        }
        let status: FileStatus
        do throws(Errno) { status = try file.descriptor.status() } catch { throw PrivateFile.readFailure(error, subject, path) }
        try require(owner, status, path, subject)
        if case .rootOrUser = owner, let link = try? FileStatus(of: path), link.kind == .symbolicLink {
            try requireOwner(owner, link, path, subject)
        }
        let contents: [UInt8]?
        do throws(Errno) {
            contents = try file.descriptor.readToEnd(byteLimit: byteLimit)
        } catch {
            throw PrivateFile.readFailure(error, subject, path)
        }
        guard let contents else {
            throw KeychainFailure(.notAvailable, "\(subject) \(path) is larger than \(byteLimit) bytes")
        }
        return contents
    }

    /// A dangling link was put there on purpose, so it does not prove absence.
    private static func isAbsent(_ path: String, _ subject: String) throws(KeychainFailure) -> Bool {
        for place in [path, FileSystem.parent(of: path)] {
            do throws(Errno) {
                let status = try FileStatus(of: place)
                guard status.kind == .symbolicLink, (try? FileStatus(of: place, followsLinks: true)) == nil else { continue }
            } catch {
                guard error == .notFound || error == .notDirectory else { throw PrivateFile.readFailure(error, subject, path) }
                continue
            }
            throw KeychainFailure(
                .notAvailable, "\(subject) \(path) cannot be read: \(place) is a dangling symbolic link", cause: .symbolicLink)
        }
        return true
    }

    private static func require(_ owner: Owner, _ status: FileStatus, _ path: String, _ subject: String) throws(KeychainFailure) {
        guard status.kind == .regularFile else {
            throw KeychainFailure(.notAvailable, "\(subject) \(path) is not a regular file", cause: .notRegularFile)
        }
        guard owner != .any else { return }
        try requireOwner(owner, status, path, subject)
        guard status.permissions & owner.forbiddenPermissions == 0 else {
            throw KeychainFailure(
                .notAvailable, "\(subject) \(path) can be changed by others: run chmod go-w on it", cause: .accessibleToOthers)
        }
    }

    private static func requireOwner(
        _ owner: Owner, _ status: FileStatus, _ path: String, _ subject: String
    ) throws(KeychainFailure) {
        guard status.isOwnedByRoot || status.owner == owner.user else {
            throw KeychainFailure(.notAvailable, "\(subject) \(path) does not belong to root: run chown root on it", cause: .wrongOwner)
        }
    }
}
