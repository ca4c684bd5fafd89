// SPDX-License-Identifier: Apache-2.0

/// The error of a keychain operation: a status for programs, structured context for code, and a reason for people.
///
/// Code decides by `status`, `path`, `subject`, `cause`, `remedy`, and `refusal`, never by the text of `reason`.
/// Two failures are equal if their statuses are.
/// The reason never contains a secret, a key, or the value of an attribute.
package struct KeychainFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// What a failure is about.
    package enum Subject: String, CaseIterable, Sendable {
        case store = "the keychain"
        case keybag = "the keybag"
        case keyFile = "the key file"
        case credential = "the systemd credential"
        case policy = "the policy"
        case backup = "the backup"
        case snapshot = "the snapshot"
        case entitlements = "the entitlements file"
        case tpm = "the TPM"
    }

    /// The specific cause, where callers or tests distinguish more than the status does.
    package enum Cause: Hashable, Sendable {
        case diskFull
        /// The store has as much as its quota allows.
        case quota
        /// Other threads or processes were writing until the deadline.
        case busy
        /// A write may or may not have taken effect.
        case outcomeUnknown
        /// An item with the primary key of the new one has another accessibility.
        case otherAccessibility
        case newerVersion
        /// A file or a credential does not exist, or a symbolic link in the place of the store leads nowhere.
        case missing
        /// A file has no content.
        case empty
        /// A symbolic link that is not followed, or whose target does not exist.
        case symbolicLink
        case notRegularFile
        /// The file has names in several directories.
        case hardLinks
        /// The file itself is mounted at its path, without its directory.
        case mountPoint
        case wrongOwner
        /// Other users can read or change it.
        case accessibleToOthers
        case networkFileSystem(name: String)
        case unknownFileSystem
        /// A file system whose content is lost at a restart or together with a container, for a file that has to be kept.
        case temporaryFileSystem(name: String)
        /// A file of another program.
        case foreignFile
        /// A key file or credential that belongs to another store.
        case otherStore
        /// keychaind keeps the keychain: a signpost with the identifier of the store is in its place.
        case keptByDaemon(StoreID)
        /// keychaind does not keep the keychain to which a signpost points.
        case notKept
        /// An environment variable is missing, or its value is invalid.
        case environmentVariable(String)
        /// An entry of a file has an invalid value.
        case invalidEntry(String)
        /// The file has a format that no released version wrote.
        case unsupportedVersion
        case malformed
        /// Altered since it was written.
        case damaged
        /// The content of the store is not what the keychain wrote last.
        case unexpectedState(StateProblem)
        /// A key derivation would cost more than the limit.
        case costRefused
        /// The output file is one of the keychain's own files.
        case isKeychainFile
        /// A backup would lack items, and may not replace an earlier one.
        case incompleteBackup
        /// The checksum of a typed recovery key, recovery kit, or code is wrong.
        case mistyped
        case locked
        case timedOut(milliseconds: Int)
        case system(errno: Int32)
        case sqlite(code: Int32)
    }

    package let status: KeychainStatus
    /// What failed and why, for people only.
    ///
    /// A failed call changes nothing unless `cause` or `remedy` says otherwise. The reason repeats that only if the advice for people does not.
    package private(set) var reason: String
    /// The file or directory that the failure is about.
    package private(set) var path: String?
    /// The subject of the failure; with a `path`, usually the kind of file at that path.
    package private(set) var subject: Subject?
    package let cause: Cause?
    /// Whether the open connection or keybag is no longer the store's: the same call may succeed once the store is reopened.
    package let requiresReopening: Bool
    /// Whether the store as a whole is damaged.
    ///
    /// The status then is only `.notAvailable`.
    package let isDamage: Bool
    /// The remedy, where the status does not imply it.
    ///
    /// With some remedies the request was carried out in part, so "nothing was changed" would be wrong.
    package private(set) var remedy: KeychainRemedy?
    /// The authentication that the same call requires to succeed.
    ///
    /// The status is that of a call that may not show a prompt.
    package private(set) var needs: AuthenticationNeeds?
    /// Why authentication failed; never nil with the status `.authFailed`.
    package private(set) var refusal: AuthenticationRefusal?

    package init(
        _ status: KeychainStatus, _ reason: String, path: String? = nil, subject: Subject? = nil, cause: Cause? = nil,
        requiresReopening: Bool = false, isDamage: Bool = false, remedy: KeychainRemedy? = nil, refusal: AuthenticationRefusal? = nil
    ) {
        self.status = status
        self.reason = reason
        self.path = path
        self.subject = subject
        self.cause = cause
        self.requiresReopening = requiresReopening
        self.isDamage = isDamage
        self.remedy = remedy
        self.refusal = refusal
    }

    /// Returns this failure with `context` in front of its reason.
    package func addingContext(_ context: String) -> KeychainFailure {
        var failure = self
        failure.reason = "\(context): \(reason)"
        return failure
    }

    /// Returns this failure with the path that it is about, and with the subject unless it has a more specific one.
    ///
    /// `addsPathToReason` is for a reason that does not name the path. Returns the failure unchanged if it has a path.
    package func located(at path: String, subject: Subject, addsPathToReason: Bool = false) -> KeychainFailure {
        guard self.path == nil else { return self }
        var failure = addsPathToReason ? addingContext(path) : self
        failure.path = path
        failure.subject = self.subject ?? subject
        return failure
    }

    /// Returns this failure with another remedy, or with none.
    package func withRemedy(_ remedy: KeychainRemedy?) -> KeychainFailure {
        var failure = self
        failure.remedy = remedy
        return failure
    }

    /// The failure of a call that requires authentication and has not shown a prompt yet.
    package static func authenticationRequired(_ needs: AuthenticationNeeds) -> KeychainFailure {
        var failure = KeychainFailure(
            .interactionNotAllowed, "an item requires authentication, and this call may not ask for it", refusal: .notInteractive)
        failure.needs = needs
        return failure
    }

    package var description: String { "\(reason) (\(status.rawValue))" }

    package static func == (left: KeychainFailure, right: KeychainFailure) -> Bool { left.status == right.status }
}

/// Authentication that fails before a prompt is shown.
extension KeychainFailure {
    /// The failure of user presence without a passcode.
    package static func passcodeNotSet() -> KeychainFailure {
        KeychainFailure(.authFailed, "no passcode is set; user presence is proved with the passcode", refusal: .passcodeNotSet)
    }

    /// The failure of a constraint that can never be satisfied where nothing verifies fingers.
    package static func biometryNotAvailable() -> KeychainFailure {
        KeychainFailure(
            .authFailed,
            "biometry cannot release a key here: that takes a keychain which keychaind keeps, keychain-fingerprint, and a fingerprint reader",
            refusal: .biometryNotAvailable)
    }
}

/// A remedy for a failure, where the status does not imply it.
package enum KeychainRemedy: CaseIterable, Hashable, Sendable {
    /// The key holder is out of space: free space there, or enter the passcode for each call.
    case makeRoomForKeys
    /// The keychain was locked, but processes that keep keys in their own memory could not be notified: end them, or lock again.
    case lockAgain
    /// Correct the administrator's policy file.
    case correctPolicy
    /// Use the newer version that wrote the data.
    case useNewerVersion
    /// Choose another output file; the keychain itself is intact.
    case writeElsewhere
    /// Accept the cost of a key derivation, if the file comes from a trusted source.
    case acceptCost
    /// End the other process that uses the keychain.
    case closeElsewhere
    /// Repair the files: some of their checksums are wrong.
    case repair
    /// Put the newest copy of the file back, or accept its present content.
    case acceptContent
    /// Save the items that can be read in a backup, and start over from it.
    case saveReadable
    /// Save the items that can be read of a content that is refused and cannot be accepted.
    case saveRefused
    /// Put an intact copy of the file back.
    case restoreCopy
    /// The protector lost the device secret: use the recovery key.
    case useRecoveryKey
    /// Make the TPM reachable for this process.
    case reachTPM
    /// Place the keychain and its key file on one volume.
    case useOneVolume
}

/// The status of a call: Apple's `OSStatus` codes with Swift names.
///
/// Not an enum, so that a code without a name here passes through unchanged.
/// Source: `SecBase.h`, "Security Framework Result Codes".
package struct KeychainStatus: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32

    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    package static let success = KeychainStatus(rawValue: 0)
    package static let unimplemented = KeychainStatus(rawValue: -4)
    package static let inputOutput = KeychainStatus(rawValue: -36)
    package static let parameter = KeychainStatus(rawValue: -50)
    package static let allocate = KeychainStatus(rawValue: -108)
    package static let userCanceled = KeychainStatus(rawValue: -128)
    package static let missingEntitlement = KeychainStatus(rawValue: -34018)
    package static let restrictedAPI = KeychainStatus(rawValue: -34020)
    package static let notAvailable = KeychainStatus(rawValue: -25291)
    package static let readOnly = KeychainStatus(rawValue: -25292)
    package static let authFailed = KeychainStatus(rawValue: -25293)
    package static let duplicateItem = KeychainStatus(rawValue: -25299)
    package static let itemNotFound = KeychainStatus(rawValue: -25300)
    package static let noSuchAttribute = KeychainStatus(rawValue: -25303)
    package static let noSuchClass = KeychainStatus(rawValue: -25306)
    package static let interactionNotAllowed = KeychainStatus(rawValue: -25308)
    package static let decode = KeychainStatus(rawValue: -26275)
    package static let `internal` = KeychainStatus(rawValue: -26276)
}
