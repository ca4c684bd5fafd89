// SPDX-License-Identifier: Apache-2.0

/// A chip that seals secrets so that only it can unseal them: a TPM 2.0.
package protocol SealingDevice: Sendable {
    /// Where the chip is, for people to read. Not a secret.
    var location: String { get }

    /// The name of the chip's storage root key: another chip, and the same one after it was cleared, has another.
    ///
    /// Where the chip has none yet, makes one or throws `.foreignObject`: then nothing was sealed by it.
    func rootKeyName(makingOne: Bool) throws(SealingFailure) -> [UInt8]

    /// Seals a secret of at most 64 bytes; what comes back is stored in clear.
    ///
    /// Makes the storage root key if the chip has none yet. With `authorization`, unsealing needs the same bytes again, and the chip counts and limits wrong ones.
    func seal(_ secret: borrowing SecretBytes, authorization: borrowing SealingAuthorization) throws(SealingFailure) -> SealedObject

    /// What was sealed.
    ///
    /// Changes nothing on a chip that has not sealed it.     /// The object must have been authenticated by the caller, or be one whose every byte `SealedObject` has checked.
    func unseal(_ object: SealedObject, authorization: borrowing SealingAuthorization) throws(SealingFailure) -> SecretBytes

    /// What the chip says of itself, without changing anything.
    func status() throws(SealingFailure) -> SealingDeviceStatus
}

/// What unsealing needs beside the chip.
package enum SealingAuthorization: ~Copyable, Sendable {
    /// Nothing. Not subject to the chip's protection against guessing, so nobody's mistakes lock it.
    case none
    /// These bytes, 32 of them. The chip counts wrong ones.
    case bytes(SecretBytes)
}

/// What a chip gave for a sealed secret.
package struct SealedObject: Hashable, Sendable {
    /// The name of the storage root key that it was sealed under.
    package let rootKeyName: [UInt8]
    /// The public part, as the chip encodes it.
    package let publicArea: [UInt8]
    /// The private part, which only the chip can read.
    package let privateArea: [UInt8]

    package init(rootKeyName: [UInt8], publicArea: [UInt8], privateArea: [UInt8]) {
        self.rootKeyName = rootKeyName
        self.publicArea = publicArea
        self.privateArea = privateArea
    }
}

/// Why a chip did not do what it was asked.
package enum SealingFailure: Error, Hashable, Sendable {
    /// There is none, it cannot be reached, or this build cannot talk to one. The text says what is missing.
    case unavailable(String)
    /// The authorization is wrong, and the chip has counted it.
    case wrongAuthorization
    /// Too many wrong ones: nothing that is authorized opens before so many seconds have passed; nil: the chip does not say.
    case lockedOut(seconds: UInt32?)
    /// The object was sealed by another chip, or by this one before it was cleared.
    case foreignObject
    /// The chip did not answer in time, or is busy with others.
    case timedOut
    /// Anything else, with the response code in the text.
    case failed(String)
}

/// What a chip says of itself.
package struct SealingDeviceStatus: Hashable, Sendable {
    /// Manufacturer and firmware, as the chip names them.
    package let name: String
    /// Wrong authorizations that are counted now, and how many lock it.
    package let failedTryCount: UInt32
    package let largestFailedTryCount: UInt32
    /// After so many seconds one counted try is forgiven.
    package let recoverySeconds: UInt32
    package let isLockedOut: Bool
    /// Without it, whoever may talk to the chip may reset the count, and so guess without limit.
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
