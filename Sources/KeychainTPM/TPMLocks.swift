// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import Synchronization

/// One lock for each chip that this process has named.
enum TPMLocks {
    private static let locks = Mutex<[String: TimedLock]>([:])

    static func lock(of tcti: String) -> TimedLock {
        locks.withLock { locks in
            let lock = locks[tcti] ?? TimedLock()
            locks[tcti] = lock
            return lock
        }
    }
}
