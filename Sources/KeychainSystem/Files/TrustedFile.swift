// SPDX-License-Identifier: Apache-2.0
internal import Glibc
package import KeychainCore

/// Files that another program or person wrote: the administrator's policy, a program's entitlements.
///
/// `subject` is the noun that errors begin with, such as "the policy".
package enum TrustedFile {
    /// The users whose file is accepted.
    package enum Owner: Sendable {
        /// Everybody.
        case any
        /// The administrator. The file must not be writable by others.
        case root
        /// The administrator or the effective user. The file must not be writable by others.
        case rootOrCurrentUser
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
        // A user namespace without the machine's root shows root as this user.
        let isRoot = status.owner == 0 || (status.owner == overflowUserID && !CurrentProcess.isInInitialUserNamespace)
        guard isRoot || (owner == .rootOrCurrentUser && status.owner == geteuid()) else {
            throw KeychainFailure(.notAvailable, "\(subject) \(path) does not belong to root: run chown root on it", cause: .wrongOwner)
        }
        guard status.permissions & 0o022 == 0 else {
            throw KeychainFailure(
                .notAvailable, "\(subject) \(path) can be changed by others: run chmod go-w on it", cause: .accessibleToOthers)
        }
    }

    /// The kernel's overflow user (/proc/sys/kernel/overflowuid).
    private static let overflowUserID: UInt32 = 65_534
}
