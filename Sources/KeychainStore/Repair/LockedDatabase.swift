// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// A database file that nobody else can use until this is let go of: SQLite has it open in no process.
///
/// Read past SQLite. Nothing in this process may use the file meanwhile: letting go of this would drop its locks.
final class LockedDatabase {
    let path: String
    let descriptor: Int32
    let byteCount: Int64

    private static let pauseNanoseconds: UInt64 = 2_000_000

    /// Waits until the deadline for whoever has it open.
    ///
    /// Throws `.notAvailable` when somebody still has, and `.readOnly` for a file that cannot be written.
    convenience init(_ path: String, deadlineNanoseconds: UInt64) throws(KeychainFailure) {
        do throws(POSIX.ErrorNumber) {
            try self.init(opening: path, deadlineNanoseconds)
        } catch  where error == .isLocked {
            throw KeychainFailure(.notAvailable, "another program has \(path) open; nothing was changed", remedy: .closeElsewhere)
        } catch {
            throw Self.failure(error, path)
        }
    }

    private init(opening path: String, _ deadlineNanoseconds: UInt64) throws(POSIX.ErrorNumber) {
        let descriptor = try POSIX.openToReadAndWrite(path)
        do throws(POSIX.ErrorNumber) {
            byteCount = try Self.lock(descriptor, path, deadlineNanoseconds)
        } catch {
            POSIX.closeDescriptor(descriptor)
            throw error
        }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { POSIX.closeDescriptor(descriptor) }

    /// Gives the file's size.
    private static func lock(_ descriptor: Int32, _ path: String, _ deadlineNanoseconds: UInt64) throws(POSIX.ErrorNumber) -> Int64 {
        while try !POSIX.lockDatabase(descriptor) {
            guard MonotonicClock.nowNanoseconds() < deadlineNanoseconds else { throw .isLocked }
            MonotonicClock.sleep(nanoseconds: pauseNanoseconds)
        }
        let (identity, byteCount) = try POSIX.identityAndByteCount(of: descriptor)
        // Another file may have been given the name before the lock was there.
        guard try POSIX.facts(of: path).identity == identity else { throw .noEntry }
        return byteCount
    }

    static func failure(_ error: POSIX.ErrorNumber, _ path: String) -> KeychainFailure {
        let status: KeychainStatus = error.meansReadOnly ? .readOnly : error.meansIO ? .inputOutput : .notAvailable
        return KeychainFailure(status, "\(path) cannot be copied: \(error.message); nothing was changed")
    }
}
