// SPDX-License-Identifier: Apache-2.0
internal import CKeychainTestShims
internal import Glibc
internal import KeychainCore
internal import Synchronization

/// A fault that a sanitizer must report, which proves that it checks the process.
package enum PlantedFault: String, CaseIterable, Sendable {
    /// No fault: accesses guarded by a lock. A sanitizer that reports them does not recognize the lock.
    case guarded
    /// Two threads increment one variable without synchronization.
    case race
    case raceInC = "race-in-c"
    /// A write beyond the end of an allocation.
    case overflow
    case useAfterFreeInC = "use-after-free-in-c"
    /// Memory that is never freed.
    case leak

    package func commit() {
        switch self {
        case .guarded: Self.countWithLocks()
        case .race: _ = keychain_test_on_two_threads { for _ in 0..<1_000 { unsafe PlantedFault.plantedRace += 1 } }
        case .raceInC: _ = keychain_test_plant_race()
        case .overflow: Self.plantOverflow()
        case .useAfterFreeInC: _ = keychain_test_plant_use_after_free()
        case .leak: keychain_test_plant_leak()
        }
    }

    // Unsafe on purpose: the accesses are not synchronized.
    nonisolated(unsafe) private static var plantedRace = 0

    private static func plantOverflow() {
        let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: 16)
        // Unsafe on purpose: the capacity is 16.
        for index in 0...16 { unsafe bytes[index] = 1 }
        unsafe bytes.deallocate()
    }

    private static let mutex = Mutex<[Int]>([])
    private static let timedLock = TimedLock()
    // Guarded by `timedLock`.
    nonisolated(unsafe) private static var timedCount = 0
    /// Initialized by the first thread, while the other waits.
    private static let madeOnce: [Int] = {
        usleep(1_000)
        return Array(0..<100)
    }()

    private static func countWithLocks() {
        _ = keychain_test_on_two_threads {
            for index in PlantedFault.madeOnce {
                // Holding the lock longer makes the other thread wait in the kernel.
                PlantedFault.mutex.withLock {
                    $0.append(index)
                    usleep(10)
                }
                guard PlantedFault.timedLock.acquire(withinSeconds: 60) else { continue }
                unsafe PlantedFault.timedCount += 1
                usleep(10)
                PlantedFault.timedLock.release()
            }
        }
    }
}

/// Texts that a child stores, and that must not be found on the disk or in logs.
package enum Marker: String, CaseIterable {
    case key = "marked-key-a7Q2xv9LmTz4"
    case removedKey = "marked-removed-key-Kd83HsWq0b"
    case value = "marked-value-pW7rZ1nYc5Ue"
    case overwrittenValue = "marked-overwritten-value-Bq6TgX2jMo"
    case removedValue = "marked-removed-value-Vy9cRf4LsDh"
    case damagedValue = "marked-damaged-value-Ne3wKz8PuQa"
    case passcode = "marked-passcode-Hs5vPn8CtUk"
    case wrongPasscode = "marked-wrong-passcode-Qe2jZf6AoLw"
    case valetIdentifier = "marked-identifier-Xt5mGb1ZkJr"
    case service = "marked-service-Jf2nQp7WvCs"
    case account = "marked-account-Lh6yTb9XdEg"
    case group = "marked-group-Ru4kMw0SzNa"
    case label = "marked-label-Gc8pVj3HqYt"
    case comment = "marked-comment-Oi1xDl5BfKe"
    case generic = "marked-generic-Zs7uWn2RmPy"
    case server = "marked-server-Ta9gEk6CjLv.example"
    case path = "/marked/path/Fw3zQh8XoIb"
    case securityDomain = "marked-domain-Mb5rYd1UvGn"
}
