// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// A claim on the synchronization of one keychain, until it is released or the process ends.
///
/// Two agents of one keychain would do no harm, but both would do the work, and each would see the objects of the other late.
package final class AgentLock: Sendable {
    private let file: OpenFile?

    fileprivate init(_ file: consuming OpenFile?) { self.file = file }
}

extension LocalKeychain {
    /// Claims the synchronization of this keychain.
    ///
    /// Returns nil if another agent has it. The lock is on a file beside the store, which stays there: a file that is removed could be locked twice.
    /// Throws `.itemNotFound` if there is no keychain, and `.notAvailable` if the file cannot be created.
    package func lockForAgent() throws(KeychainFailure) -> AgentLock? {
        _ = try isSynchronizing()
        // A keychain in memory has one process.
        guard let backend = backend as? FileKeychainBackend else { return AgentLock(nil) }
        let path = FileSystem.parent(of: backend.configuration.storePath) + "/sync.lock"
        do throws(Errno) {
            let file = try Self.openLockFile(path)
            guard try file.descriptor.tryLock(.synchronizing) else { return nil }
            return AgentLock(file)
        } catch {
            throw KeychainFailure(
                .notAvailable, "\(path) cannot be locked: \(error)", path: path, subject: .store, cause: .system(errno: error.rawValue))
        }
    }

    private static func openLockFile(_ path: String) throws(Errno) -> OpenFile {
        do throws(Errno) {
            return try OpenFile(path, .createExclusively)
        } catch .exists {
            return try OpenFile(path, .readWrite)
        }
    }
}
