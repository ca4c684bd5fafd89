// SPDX-License-Identifier: Apache-2.0

/// A device that seals secrets so that only it can unseal them: a TPM 2.0.
package protocol SealingDevice: Sendable {
    /// Where the device is, for people. Not secret.
    var location: String { get }

    /// Returns the name of the device's storage root key. Another device has another one, and so does the same device after it was
    /// cleared.
    ///
    /// If the device has no root key yet, creates one or, with `creatingIfMissing` false, throws `.foreignObject`: it cannot have sealed anything.
    func rootKeyName(creatingIfMissing: Bool) throws(SealingFailure) -> [UInt8]

    /// Seals a secret of at most 64 bytes. The result is stored in plaintext.
    ///
    /// Creates the storage root key if the device has none yet. With `authorization`, unsealing requires the same bytes again, and the
    /// device counts and limits wrong ones.
    func seal(_ secret: borrowing SecretBytes, authorization: borrowing SealingAuthorization) throws(SealingFailure) -> SealedObject

    /// Returns the sealed secret.
    ///
    /// Does not change a device that has not sealed the object. The caller must have authenticated the object, or `SealedObject` must
    /// have checked its every byte.
    func unseal(_ object: SealedObject, authorization: borrowing SealingAuthorization) throws(SealingFailure) -> SecretBytes

    /// Returns the device's own report, without changing anything.
    func status() throws(SealingFailure) -> SealingDeviceStatus
}

/// The authorization of a sealed secret.
package enum SealingAuthorization: ~Copyable, Sendable {
    /// None. Exempt from the device's protection against guessing, so that wrong passcodes cannot lock it out.
    case none
    /// 32 bytes. The device counts wrong ones.
    case bytes(SecretBytes)
}

/// A sealed secret.
package struct SealedObject: Hashable, Sendable {
    /// The name of the storage root key that it was sealed under.
    package let rootKeyName: [UInt8]
    /// The public part, as the device encodes it.
    package let publicArea: [UInt8]
    /// The private part, which only the device can decrypt.
    package let privateArea: [UInt8]

    package init(rootKeyName: [UInt8], publicArea: [UInt8], privateArea: [UInt8]) {
        self.rootKeyName = rootKeyName
        self.publicArea = publicArea
        self.privateArea = privateArea
    }
}

/// A failure of a sealing device.
package enum SealingFailure: Error, Hashable, Sendable {
    /// There is no device, it cannot be reached, or this build does not support it. The text names what is missing.
    case unavailable(String)
    /// The authorization is wrong, and the device has counted it.
    case wrongAuthorization
    /// Too many wrong authorizations: the device refuses further ones for so many seconds; nil: unknown.
    case lockedOut(seconds: UInt32?)
    /// Another device sealed the object, or this one before it was cleared.
    case foreignObject
    /// The device did not respond in time, or is busy.
    case timedOut
    /// Anything else, with the response code in the text.
    case failed(String)
}

/// A sealing device's own report.
package struct SealingDeviceStatus: Hashable, Sendable {
    /// Manufacturer and firmware, as the device names them.
    package let name: String
    /// The number of wrong authorizations counted now.
    package let failedTryCount: UInt32
    /// The number of wrong authorizations that causes a lockout.
    package let largestFailedTryCount: UInt32
    /// The time after which one counted attempt is forgiven.
    package let recoverySeconds: UInt32
    package let isLockedOut: Bool
    /// Whether resetting the count requires an authorization.
    ///
    /// Without one, any user of the device could reset it and guess without limit.
    package let isLockoutAuthorizationSet: Bool

    package init(
        name: String, failedTryCount: UInt32, largestFailedTryCount: UInt32, recoverySeconds: UInt32, isLockedOut: Bool,
        isLockoutAuthorizationSet: Bool
    ) {
        self.name = name
        self.failedTryCount = failedTryCount
        self.largestFailedTryCount = largestFailedTryCount
        self.recoverySeconds = recoverySeconds
        self.isLockedOut = isLockedOut
        self.isLockoutAuthorizationSet = isLockoutAuthorizationSet
    }
}

/// The encoding of a sealed object in a keybag:
///
///     version (1) = 1 ‖ counted(root key name) ‖ counted(public area) ‖ counted(private area)
///
/// Parsing is strict and limits sizes, because the object with the device secret is read before anything can authenticate it.
extension SealedObject {
    private static let version: UInt8 = 1
    /// From an algorithm identifier (2) with one byte to one with the longest digest.
    private static let nameByteCounts = 3...66
    /// Several times the size for a secret of 64 bytes.
    private static let areaByteCounts = 3...1_024

    package var encoded: [UInt8] {
        var bytes = [Self.version]
        bytes.append(lengthPrefixed: rootKeyName)
        bytes.append(lengthPrefixed: publicArea)
        bytes.append(lengthPrefixed: privateArea)
        return bytes
    }

    /// Why bytes are not a sealed object.
    package enum EncodingFailure: Error, Hashable, Sendable {
        case newerVersion
        case malformed
    }

    /// Parses `encoded`.
    package init(encoded: some Collection<UInt8>) throws(EncodingFailure) {
        var reader = ByteReader(encoded)
        guard let version = reader.readByte(), version > 0 else { throw .malformed }
        guard version == Self.version else { throw .newerVersion }
        guard let name = reader.readLengthPrefixed(), let publicArea = reader.readLengthPrefixed(),
            let privateArea = reader.readLengthPrefixed(), reader.isAtEnd, Self.nameByteCounts.contains(name.count),
            Self.areaByteCounts.contains(publicArea.count), Self.areaByteCounts.contains(privateArea.count),
            Self.isCounted(publicArea), Self.isCounted(privateArea)
        else { throw .malformed }
        self.init(rootKeyName: Array(name), publicArea: Array(publicArea), privateArea: Array(privateArea))
    }

    /// Whether the byte count at the beginning of a TPM's encoding, big-endian, is correct.
    ///
    /// An area with a wrong byte count is never passed to the TPM.
    private static func isCounted(_ area: ArraySlice<UInt8>) -> Bool {
        area.prefix(2).reduce(0) { $0 << 8 | Int($1) } == area.count - 2
    }
}

extension KeychainFailure {
    /// The failure of a keychain whose sealing device failed.
    ///
    /// The keychain's file is unchanged in all cases.
    package init(_ failure: SealingFailure) {
        switch failure {
        case .wrongAuthorization:
            self.init(.authFailed, "the passcode is wrong; the TPM has counted it", subject: .tpm, refusal: .wrongPasscode)
        case .lockedOut(let seconds):
            let time = seconds.map { "in \($0) s" } ?? "later"
            self.init(
                .authFailed, "too many wrong passcodes: try again \(time)", subject: .tpm, refusal: .lockedOut(seconds: seconds))
        case .foreignObject:
            self.init(
                .notAvailable,
                """
                the TPM cannot unseal this keychain's secret: it was cleared, or is another TPM. Nothing was deleted; the recovery key, \
                if one was made, restores access
                """,
                subject: .tpm, remedy: .useRecoveryKey)
        case .unavailable(let what):
            self.init(
                .notAvailable,
                """
                a TPM is required, and it is absent or cannot be reached: \(what). Nothing was deleted; if that TPM holds the key of this \
                keychain, the recovery key, if one was made, restores access without it
                """,
                subject: .tpm, remedy: .reachTPM)
        case .timedOut:
            self.init(
                .notAvailable, "the TPM did not respond in time, or is busy", subject: .tpm, remedy: .reachTPM)
        case .failed(let what):
            self.init(
                .notAvailable, "the TPM failed: \(what)", subject: .tpm, remedy: .reachTPM)
        }
    }
}
