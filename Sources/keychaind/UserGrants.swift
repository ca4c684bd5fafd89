// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainIPC
internal import KeychainSystem
internal import Synchronization

/// The grants of a user, in a file beside the store.
///
/// A keychain that is adopted has none, and a release removes them: programs of the user could change the file elsewhere.
final class UserGrants: Sendable {
    private let path: String
    private let time: any WallClock
    private let grants = Mutex<AccessGrants?>(nil)
    private let changeCount = Atomic(0)

    init(inDirectory directory: String, time: any WallClock = SystemWallClock()) {
        path = directory + "/grants"
        self.time = time
    }

    /// Changes when a grant is added or removed.
    var version: Int { changeCount.load(ordering: .acquiring) }

    /// Throws `.notAvailable` if the file cannot be read, or is damaged.
    func all() throws(KeychainFailure) -> AccessGrants {
        try grants.withLock { grants throws(KeychainFailure) in try read(&grants) }
    }

    func add(program: String, group: String) throws(KeychainFailure) {
        let grant = try AccessGrant(program: program, group: group, grantedAtSeconds: UInt64(max(0, time.now())))
        try change { grants throws(KeychainFailure) in try grants.add(grant) }
    }

    func remove(program: String, group: String) throws(KeychainFailure) {
        try change { grants throws(KeychainFailure) in try grants.remove(program: program, group: group) }
    }

    private func change(_ body: (inout AccessGrants) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        try grants.withLock { grants throws(KeychainFailure) in
            var changed = try read(&grants)
            try body(&changed)
            // Read again, by all connections, if the write fails: it may have taken effect.
            grants = nil
            defer { changeCount.add(1, ordering: .releasing) }
            _ = try AtomicFile(path).write(replacingExisting: true) { writer throws(KeychainFailure) in
                try writer.append(changed.encoded)
            }
            grants = changed
        }
    }

    private func read(_ grants: inout AccessGrants?) throws(KeychainFailure) -> AccessGrants {
        if let grants { return grants }
        let subject = "the file of grants"
        guard try PrivateFile.isPresent(path, subject: subject) else {
            grants = AccessGrants()
            return AccessGrants()
        }
        let content = try PrivateFile.read(path, byteLimit: AccessGrants.largestFileByteCount, subject: subject)
        // The bytes are copied within the closure.
        guard let parsed = AccessGrants(unsafe content.withBytes { unsafe Array($0) }) else {
            throw KeychainFailure(
                .notAvailable, "\(subject) \(path) is damaged: remove it as root, and give the grants again", path: path, cause: .malformed)
        }
        grants = parsed
        return parsed
    }
}
