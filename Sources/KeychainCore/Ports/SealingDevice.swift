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

/// A sealed object as a keybag keeps it:
///
///     version (1) = 1 ‖ counted(root key name) ‖ counted(public area) ‖ counted(private area)
///
/// Limited in size and exact in structure, since the one that holds the device secret is read before anything can authenticate it.
extension SealedObject {
    private static let version: UInt8 = 1
    /// The algorithm of a digest (2) and the longest digest.
    private static let nameByteCounts = 3...66
    /// Several times what a chip needs for 64 bytes.
    private static let areaByteCounts = 3...1_024

    package var encoded: [UInt8] {
        var bytes = [Self.version]
        bytes.append(lengthPrefixed: rootKeyName)
        bytes.append(lengthPrefixed: publicArea)
        bytes.append(lengthPrefixed: privateArea)
        return bytes
    }

    /// Why bytes are no sealed object.
    package enum EncodingFailure: Error, Hashable, Sendable {
        case newerVersion
        case malformed
    }

    /// Parses `encoded`, and nothing else.
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

    /// A TPM's own encoding begins with the number of bytes that follow, big-endian: one that lies is not shown to it.
    private static func isCounted(_ area: ArraySlice<UInt8>) -> Bool {
        area.prefix(2).reduce(0) { $0 << 8 | Int($1) } == area.count - 2
    }
}

extension KeychainFailure {
    /// What a chip's refusal means for a keychain.
    ///
    /// The chip says nothing about the keychain's file: whatever this is, nothing there was changed.
    package init(_ failure: SealingFailure, file: StaticString = #fileID, line: UInt = #line) {
        switch failure {
        case .wrongAuthorization:
            self.init(.authFailed, "the passcode is wrong; the TPM has counted it", file: file, line: line)
        case .lockedOut(let seconds):
            let time = seconds.map { "in \($0) s" } ?? "later"
            self.init(
                .authFailed, "too many wrong passcodes: try again \(time)", refusal: .lockedOut(seconds: seconds), file: file, line: line)
        case .foreignObject:
            self.init(
                .notAvailable,
                "the TPM cannot open what was sealed for this keychain: it was cleared, or this is another one. Nothing was deleted; the recovery key, if one was made, restores access",
                remedy: .useRecoveryKey, file: file, line: line)
        case .unavailable(let what):
            self.init(
                .notAvailable,
                "this keychain needs a TPM, and it is absent or cannot be reached: \(what). Nothing was deleted; without that TPM the recovery key, if one was made, restores access",
                remedy: .reachTPM, file: file, line: line)
        case .timedOut:
            self.init(
                .notAvailable, "the TPM did not answer in time, or is busy with others; nothing was changed", remedy: .reachTPM,
                file: file, line: line)
        case .failed(let what):
            self.init(.notAvailable, "the TPM failed: \(what); nothing was changed", remedy: .reachTPM, file: file, line: line)
        }
    }
}
