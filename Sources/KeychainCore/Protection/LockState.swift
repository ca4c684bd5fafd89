// SPDX-License-Identifier: Apache-2.0

/// The state of a keychain's lock.
///
/// Without a passcode it is always unlocked.
package enum LockState: Hashable, Sendable {
    /// Not unlocked since the system started or since a lock of everything: only `always` items are available.
    case neverUnlocked
    /// Locked after an unlock: `afterFirstUnlock` items are available too.
    case locked
    case unlocked
}

/// Which classes a lock affects.
package enum LockExtent: Hashable, Sendable {
    /// The classes that are available only while unlocked.
    case whenUnlocked
    /// Also `afterFirstUnlock` items, as a restart does.
    case everything

    /// The slots of the key holder that the lock empties.
    package var slots: [KeyHolderSlot] { self == .everything ? [.unlocked, .firstUnlock] : [.unlocked] }
}

/// When an unlocked keychain locks itself.
package enum AutoLock: Hashable, Sendable {
    /// After so many seconds, at least 1, without use of a key.
    case after(seconds: UInt32)
    /// Only by an explicit lock or a restart of the system.
    case never

    package static let standard = AutoLock.after(seconds: 15 * 60)

    package var seconds: UInt32? {
        switch self {
        case .after(let seconds): seconds
        case .never: nil
        }
    }
}

/// The number of times that a store was locked.
///
/// Another process cannot erase the keys in a process's memory. So each process compares this number with the number at its unlock.
package struct LockEpoch: RawRepresentable, Hashable, Sendable {
    /// The upper 32 bits count locks of everything, the lower 32 bits the others.
    package let rawValue: Int64

    package init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// The epoch for slots that survive locks, where it has no effect.
    package static let unused = LockEpoch(rawValue: 0)

    private init(everything: UInt32, others: UInt32) {
        rawValue = Int64(bitPattern: UInt64(everything) << 32 | UInt64(others))
    }

    private var everything: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 32) }
    private var others: UInt32 { UInt32(truncatingIfNeeded: rawValue) }

    /// Returns the epoch after one more lock.
    package func advanced(by extent: LockExtent) -> LockEpoch {
        switch extent {
        case .whenUnlocked: LockEpoch(everything: everything, others: others &+ 1)
        case .everything: LockEpoch(everything: everything &+ 1, others: others)
        }
    }

    /// Whether `later` follows this epoch, with one or more locks in between.
    ///
    /// Each half wraps around.
    package func isBefore(_ later: LockEpoch) -> Bool {
        self != later && Int32(bitPattern: later.everything &- everything) >= 0 && Int32(bitPattern: later.others &- others) >= 0
    }

    /// Returns whether a secret stored in a slot at this epoch is still valid at a later one.
    package func isValid(for slot: KeyHolderSlot, at later: LockEpoch) -> Bool {
        switch slot {
        case .unlocked: self == later
        case .firstUnlock: everything == later.everything
        case .device: true
        }
    }
}

/// Reads the lock epoch of a store: a session of the store, or the store itself, which begins a session for it.
package protocol LockEpochReading {
    /// Returns the lock epoch.
    ///
    /// A session returns the epoch of its snapshot, and in a write the one that no lock can change before the end of the transaction.
    func lockEpoch() throws(KeychainFailure) -> LockEpoch
}

/// An epoch that was read before.
extension LockEpoch: LockEpochReading {
    package func lockEpoch() -> LockEpoch { self }
}
