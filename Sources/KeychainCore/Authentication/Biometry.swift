// SPDX-License-Identifier: Apache-2.0

/// The sets of enrolled fingers for which a biometric key is released.
package enum BiometryKind: Hashable, Sendable {
    /// Each set (`biometryAny`).
    case any
    /// The set that was enrolled when the item was stored (`biometryCurrentSet`).
    case currentSet
}

/// Names the biometric keys of one set of fingers.
package struct BiometricSetID: Hashable, Sendable {
    package static let keysByteCount = 8

    /// Names the keys that were made together, on one machine.
    ///
    /// Their generations can be compared, and others cannot.
    package let keys: [UInt8]
    /// Increases when the set of fingers changes.
    package let generation: UInt64

    package init(keys: [UInt8], generation: UInt64) {
        self.keys = keys
        self.generation = generation
    }

    /// Whether the key of this set was destroyed when the other one was made.
    package func isOlder(than other: BiometricSetID) -> Bool { keys == other.keys && generation < other.generation }
}

/// What is known of the fingers of a person, for storing items and for telling which items are lost.
package struct BiometricEnrollment: Hashable, Sendable {
    package let setID: BiometricSetID
    /// The public keys to which the keys of items are sealed.
    package let anyPublicKey: [UInt8]
    package let currentSetPublicKey: [UInt8]

    package init(setID: BiometricSetID, anyPublicKey: [UInt8], currentSetPublicKey: [UInt8]) {
        self.setID = setID
        self.anyPublicKey = anyPublicKey
        self.currentSetPublicKey = currentSetPublicKey
    }
}

/// The biometric keys of one keychain that a match released, for one use or one context.
///
/// Wiped with the last reference.
package final class BiometricRelease: Sendable {
    package let storeID: StoreID
    package let setID: BiometricSetID
    package let anyKey: SharedSecretBytes
    package let currentSetKey: SharedSecretBytes

    package init(storeID: StoreID, setID: BiometricSetID, anyKey: SharedSecretBytes, currentSetKey: SharedSecretBytes) {
        self.storeID = storeID
        self.setID = setID
        self.anyKey = anyKey
        self.currentSetKey = currentSetKey
    }

    package func key(_ kind: BiometryKind) -> SharedSecretBytes {
        switch kind {
        case .any: anyKey
        case .currentSet: currentSetKey
        }
    }
}

/// A value that changes with the set of enrolled fingers.
package struct FingerprintSet: Hashable, Sendable {
    package enum Evidence: UInt8, Sendable {
        /// The digest of the prints themselves.
        case prints = 1
        /// The names of the fingers and of the reader: weaker, because it stays the same if a finger is enrolled again.
        case names = 2
    }

    package static let digestByteCount = 32

    package let evidence: Evidence
    package let digest: [UInt8]
    /// The digest of the names, also where there is that of the prints.
    package let namesDigest: [UInt8]

    package init(printsDigest: [UInt8]?, namesDigest: [UInt8]) {
        evidence = printsDigest == nil ? .names : .prints
        digest = printsDigest ?? namesDigest
        self.namesDigest = namesDigest
    }

    /// How a set compares with a set that was seen before.
    package enum Comparison: Sendable {
        case same
        case other
        /// The prints were known before, and are not now.
        case unknown
    }

    package func compared(with former: FingerprintSet) -> Comparison {
        switch (evidence, former.evidence) {
        case (.prints, .prints): digest == former.digest ? .same : .other
        case (_, .names): namesDigest == former.namesDigest ? .same : .other
        case (.names, .prints): .unknown
        }
    }
}

/// Whether biometry can be used now.
package enum BiometryAvailability: Hashable, Sendable {
    case available(FingerprintSet)
    case notEnrolled
    /// Too many fingers did not match.
    case lockedOut
    /// The text says why, for a person.
    case notAvailable(String)
}

/// Verifies the fingers of the person whose keychain it is, outside of this process.
package protocol BiometryVerifier: Sendable {
    /// Looks whether biometry can be used now. Takes some milliseconds.
    func availability() -> BiometryAvailability

    /// The secret that wraps the biometric keys, made at the first use.
    func secret() throws(KeychainFailure) -> SharedSecretBytes

    /// The same; nil before the first use.
    func presentSecret() throws(KeychainFailure) -> SharedSecretBytes?

    /// Begins to verify a finger, and calls `onEnd` once on another thread unless it is canceled before.
    ///
    /// Throws the refusal of `BiometryAvailability` if it cannot begin.
    func beginScan(
        timeoutSeconds: UInt32, onEnd: @escaping @Sendable (BiometricScanOutcome) -> Void
    ) throws(KeychainFailure) -> any BiometricScan

    /// Notes that the person has entered the passcode, which permits biometry again.
    func passcodeWasEntered()
}

/// A finger is being verified.
package protocol BiometricScan: Sendable {
    func cancel()
}

package enum BiometricScanOutcome: Sendable {
    /// The set of fingers after the match.
    case matched(FingerprintSet)
    case refused(KeychainFailure)
}

/// What a program can learn about biometry (`LAContext`).
package struct BiometryStatus: Hashable, Sendable {
    /// Whether there is a reader.
    package var hasReader: Bool
    /// A value that changes with the set of fingers, the same for all programs of the user; nil without biometry.
    package var domainState: [UInt8]?
    /// Whether `domainState` shows that a finger was enrolled again.
    package var isExact: Bool

    package init(hasReader: Bool = false, domainState: [UInt8]? = nil, isExact: Bool = false) {
        self.hasReader = hasReader
        self.domainState = domainState
        self.isExact = isExact
    }

    package init(_ availability: BiometryAvailability) {
        switch availability {
        case .available(let set): self.init(hasReader: true, domainState: set.digest, isExact: set.evidence == .prints)
        case .notEnrolled, .lockedOut: self.init(hasReader: true)
        case .notAvailable: self.init()
        }
    }
}

extension BiometryAvailability {
    /// The failure of a call that needs biometry; nil if it is available.
    package var failure: KeychainFailure? {
        switch self {
        case .available: nil
        case .notEnrolled: KeychainFailure(.authFailed, "no finger is enrolled: run `fprintd-enroll`", refusal: .biometryNotEnrolled)
        case .lockedOut:
            KeychainFailure(
                .authFailed, "fingerprints are not accepted before the passcode has been entered", refusal: .biometryLockedOut)
        case .notAvailable(let reason):
            KeychainFailure(.authFailed, "biometry is not available: \(reason)", refusal: .biometryNotAvailable)
        }
    }
}
