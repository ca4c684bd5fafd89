// SPDX-License-Identifier: Apache-2.0

/// Whether a keychain's keys are at hand.
///
/// Without a passcode it is always unlocked.
package enum LockState: Hashable, Sendable {
    /// Not unlocked since the system started, or since everything was locked: only `always` items can be had.
    case neverUnlocked
    /// Locked after an unlock: `afterFirstUnlock` items can be had too.
    case locked
    case unlocked
}

/// How much a lock locks.
package enum LockExtent: Hashable, Sendable {
    /// What its name says can be had only while unlocked.
    case whenUnlocked
    /// `afterFirstUnlock` items too, as a restart does.
    case everything
}

/// When an unlocked keychain locks itself.
package enum AutoLock: Hashable, Sendable {
    /// After so many seconds, at least 1, in which no key was asked for.
    case after(seconds: UInt32)
    /// Not before somebody locks it, or the system restarts.
    case never

    package static let standard = AutoLock.after(seconds: 15 * 60)

    package var seconds: UInt32? {
        switch self {
        case .after(let seconds): seconds
        case .never: nil
        }
    }
}

/// How often a store was locked, as the store counts it.
///
/// Processes whose keys no lock can reach directly compare it with the count at their unlock.
package struct LockEpoch: RawRepresentable, Hashable, Sendable {
    /// The upper half counts locks of everything, the lower half the others.
    package let rawValue: Int64

    package init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    private init(everything: UInt32, others: UInt32) {
        rawValue = Int64(bitPattern: UInt64(everything) << 32 | UInt64(others))
    }

    private var everything: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 32) }
    private var others: UInt32 { UInt32(truncatingIfNeeded: rawValue) }

    /// The count after one more lock.
    package func advanced(by extent: LockExtent) -> LockEpoch {
        switch extent {
        case .whenUnlocked: LockEpoch(everything: everything, others: others &+ 1)
        case .everything: LockEpoch(everything: everything &+ 1, others: others)
        }
    }

    /// Whether what was put into a slot at this count still counts as held at a later one.
    package func keeps(_ slot: KeyHolderSlot, at later: LockEpoch) -> Bool {
        switch slot {
        case .unlocked: self == later
        case .firstUnlock: everything == later.everything
        case .device: true
        }
    }
}
