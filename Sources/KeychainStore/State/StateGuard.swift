// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// What a store needs to detect changes by other programs: the cipher of its state, and its anchor.
///
/// The comparison of the rows with the state reads every row. It is skipped if no program has written to the files since they were compared or
/// written by a process that knew them to match: see `FileStamps`.
final class StateGuard: Sendable {
    let cipher: any StateCipher
    let anchor: AnchorFile
    /// The database file that is protected.
    ///
    /// Another file in its place has to be compared first.
    let database: FileStatus.Identity
    /// The record that this process read or wrote last.
    private let known: Mutex<AnchorRecord>

    init(cipher: any StateCipher, anchor: AnchorFile, database: FileStatus.Identity) {
        self.cipher = cipher
        self.database = database
        self.anchor = anchor
        known = Mutex(anchor.read() ?? AnchorRecord())
    }

    /// Reads the anchor again and returns its record.
    func reload() -> AnchorRecord? {
        guard let record = anchor.read() else { return nil }
        known.withLock { $0 = record }
        return record
    }

    /// Returns the state whose rows were compared with it, if the files have these stamps since.
    ///
    /// Another process may have written the anchor since this one has read it.
    func verifiedStateID(of files: FileStamps) -> Identifier128? {
        let verified = known.withLock { $0.verified }
        if let verified, verified.files == files { return verified.stateID }
        guard let other = reload()?.verified, other.files == files else { return nil }
        return other.stateID
    }

    /// Records what is known of the files now.
    ///
    /// - Parameters:
    ///   - state: A durable state; nil if the state is not known to be durable.
    ///   - verified: The state that matches the rows, with the files; nil to leave the earlier one, which is then out of date.
    func record(durable state: StoreState?, verified: AnchorRecord.Verified?) {
        let (before, after) = known.withLock { known in
            let before = known
            // A higher count belongs to changes that are missing in the store. A person has to accept that.
            if let state, state.changeCount > known.lastState?.changeCount ?? 0 { known.lastState = AnchorRecord.StateName(state) }
            if let verified { known.verified = verified }
            return (before, known)
        }
        if before != after { anchor.write(after) }
    }
}

/// The state that the files matched before a change by this process.
///
/// If they matched it before, and the change is this process's own, they match the new state after it.
struct VerifiedFiles {
    let stateID: Identifier128

    /// Returns nil unless the files are as they were when their rows were last known to match their state.
    init?(_ stateGuard: StateGuard, _ location: FileLocation) {
        guard let files = FileStamps(of: location), let id = stateGuard.verifiedStateID(of: files) else { return nil }
        stateID = id
    }

    /// Records the files after a change that did not change the state.
    func record(in stateGuard: StateGuard?, _ location: FileLocation) {
        guard let stateGuard, let files = FileStamps(of: location) else { return }
        stateGuard.record(durable: nil, verified: .init(stateID: stateID, files: files))
    }
}

extension SQLiteItemStore {
    /// Runs `body`, which changes the files but not the content of the store.
    func keepingVerified(_ stateGuard: StateGuard?, _ path: String, _ body: () -> Void) {
        guard let stateGuard, let location = try? FileLocation(path), let verified = VerifiedFiles(stateGuard, location) else {
            return body()
        }
        body()
        verified.record(in: stateGuard, location)
    }
}
