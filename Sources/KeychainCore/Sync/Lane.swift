// SPDX-License-Identifier: Apache-2.0

/// One of the two sets of items that have keys and logs of their own.
///
/// A locked device can open the keys of `afterFirstUnlock` only.
package enum Lane: UInt8, CaseIterable, Comparable, Sendable {
    case whenUnlocked = 1
    /// Also the items that are always available, and all deletions.
    case afterFirstUnlock = 2

    /// The lane of an item; nil if the item must not leave the device.
    package init?(_ accessibility: ItemAccessibility) {
        switch accessibility {
        case .whenUnlocked: self = .whenUnlocked
        case .afterFirstUnlock, .always: self = .afterFirstUnlock
        case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly, .whenPasscodeSetThisDeviceOnly:
            return nil
        }
    }

    package static func < (left: Lane, right: Lane) -> Bool { left.rawValue < right.rawValue }
}

/// What a device may do in its circle.
package enum DeviceRole: UInt8, CaseIterable, Sendable {
    /// Writes items, and admits and removes devices.
    case owner = 1
    /// Writes items.
    case writer = 2
    /// Reads items. Batches and checkpoints of readers are invalid.
    case reader = 3
    /// An owner that is no machine: a secret on paper, with which a person begins again.
    ///
    /// A role of its own, so that no device that was removed can admit itself as a recovery kit.
    case recoveryKit = 4

    package var mayWrite: Bool { self != .reader }
    /// Whether the device may admit and remove devices.
    package var isOwner: Bool { self == .owner || self == .recoveryKit }
}

/// The public keys of a device.
package struct DevicePublicKeys: Hashable, Sendable {
    /// An Ed25519 public key, 32 bytes.
    package let signing: [UInt8]
    /// An X25519 public key for keys of the lane `whenUnlocked`, 32 bytes.
    package let whenUnlockedBox: [UInt8]
    /// An X25519 public key for keys of the lane `afterFirstUnlock`, 32 bytes.
    package let afterFirstUnlockBox: [UInt8]

    package static let keyByteCount = 32

    /// Returns nil unless every key has 32 bytes.
    package init?(signing: [UInt8], whenUnlockedBox: [UInt8], afterFirstUnlockBox: [UInt8]) {
        guard [signing, whenUnlockedBox, afterFirstUnlockBox].allSatisfy({ $0.count == Self.keyByteCount }) else { return nil }
        self.signing = signing
        self.whenUnlockedBox = whenUnlockedBox
        self.afterFirstUnlockBox = afterFirstUnlockBox
    }

    package func box(for lane: Lane) -> [UInt8] { lane == .whenUnlocked ? whenUnlockedBox : afterFirstUnlockBox }
}
