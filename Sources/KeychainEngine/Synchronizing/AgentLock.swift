// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// A claim on the synchronization of one keychain, until it is released or the process ends.
///
/// Two agents of one keychain would do no harm, but both would do the work, and each would see the objects of the other late.
package final class AgentLock: Sendable {
    /// Nil for a keychain in memory, which has one process.
    private let file: OpenFile?
    private let descriptor: FileDescriptor?

    fileprivate init(_ file: consuming OpenFile) {
        descriptor = file.descriptor
        self.file = consume file
    }

    fileprivate init() {
        file = nil
        descriptor = nil
    }

    deinit {
        // A child process that another thread has just forked has a copy of the descriptor until it starts its program.
        try? descriptor?.unlock(.synchronizing)
    }
}

extension LocalKeychain {
    /// Claims the synchronization of this keychain.
    ///
    /// Returns nil if another agent has it. The lock is on a file beside the store, which stays there: a file that is removed could be locked twice.
    /// Throws `.itemNotFound` if there is no keychain, and `.notAvailable` if the file cannot be created.
    package func lockForAgent() throws(KeychainFailure) -> AgentLock? {
        _ = try isSynchronizing()
        guard let backend = backend as? FileKeychainBackend else { return AgentLock() }
        let path = Self.lockPath(backend)
        do throws(Errno) {
            let file = try Self.openLockFile(path)
            guard try file.descriptor.tryLock(.synchronizing) else { return nil }
            return AgentLock(file)
        } catch {
            throw KeychainFailure(
                .notAvailable, "\(path) cannot be locked: \(error)", path: path, subject: .store, cause: .system(errno: error.rawValue))
        }
    }

    /// Returns whether an agent has claimed the synchronization of this keychain, without claiming it meanwhile.
    package func hasAgent() throws(KeychainFailure) -> Bool {
        guard let backend = backend as? FileKeychainBackend else { return false }
        let path = Self.lockPath(backend)
        do throws(Errno) {
            // Closed at the end of the scope.
            let file = try OpenFile(path, .readWrite)
            return file.descriptor.isLockedByOthers(.synchronizing)
        } catch .notFound {
            return false
        } catch {
            throw KeychainFailure(
                .notAvailable, "\(path) cannot be opened: \(error)", path: path, subject: .store, cause: .system(errno: error.rawValue))
        }
    }

    private static func lockPath(_ backend: FileKeychainBackend) -> String {
        FileSystem.parent(of: backend.configuration.storePath) + "/sync.lock"
    }

    private static func openLockFile(_ path: String) throws(Errno) -> OpenFile {
        do throws(Errno) {
            return try OpenFile(path, .createExclusively)
        } catch .exists {
            return try OpenFile(path, .readWrite)
        }
    }
}
