// SPDX-License-Identifier: Apache-2.0

/// An error of a keychain operation: a status for programs, structured context for code, and a reason for people.
///
/// Code decides by `status`, `path`, `subject`, `cause`, `remedy` and `refusal`, never by the text of `reason`.
/// Two failures are equal if their statuses are.
/// The reason never contains a secret, a key, or the value of an attribute.
package struct KeychainFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// What a failure is about.
    package enum Subject: String, Sendable {
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

    /// The specific cause, where a caller or a test distinguishes it and the status does not tell.
    package enum Cause: Hashable, Sendable {
        case diskFull
        /// A write may or may not have taken effect.
        case outcomeUnknown
        case newerVersion
        /// The file has a format that no released version wrote.
        case unsupportedVersion
        case malformed
        /// A key derivation would cost more than the limit.
        case costRefused
        /// A file that was to be written is part of the keychain itself.
        case isKeychainFile
        case wrongPasscode
        case wrongRecoveryKey
        case mistypedRecoveryKey
        case locked
        case timedOut(milliseconds: Int)
        case system(errno: Int32)
        case sqlite(code: Int32)
    }

    package let status: KeychainStatus
    /// For people only; see `description`.
    package private(set) var reason: String
    /// Where the failure was created: file and line.
    package let place: String
    /// The file or directory that the failure is about.
    package private(set) var path: String?
    /// What `path` is, or what the failure is about where there is no path.
    package private(set) var subject: Subject?
    package let cause: Cause?
    /// The open connection or keybag is no longer the store's: the same call may succeed once the store is reopened.
    package let requiresReopening: Bool
    /// The store as a whole is damaged; its status alone only says that the keychain cannot be used.
    package let isDamage: Bool
    /// What helps, where the status does not tell.
    ///
    /// With some remedies the request was carried out in part, so "nothing was changed" would be wrong.
    package private(set) var remedy: KeychainRemedy?
    /// What has to be released before the same call can succeed. The status is that of a call that may not ask.
    package private(set) var needs: AuthenticationNeeds?
    /// Why a person could not be authenticated, where the status does not tell.
    package private(set) var refusal: AuthenticationRefusal?

    package init(
        _ status: KeychainStatus, _ reason: String, path: String? = nil, subject: Subject? = nil, cause: Cause? = nil,
        requiresReopening: Bool = false, isDamage: Bool = false, remedy: KeychainRemedy? = nil, refusal: AuthenticationRefusal? = nil,
        file: StaticString = #fileID, line: UInt = #line
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
        self.place = "\(file):\(line)"
    }

    /// Returns this failure with the path it is about, which also precedes the reason.
    ///
    /// Does nothing if the failure already has a path.
    package func located(at path: String, _ subject: Subject) -> KeychainFailure {
        guard self.path == nil else { return self }
        var failure = self
        failure.path = path
        failure.subject = subject
        failure.reason = "\(path): \(reason)"
        return failure
    }

    /// Returns this failure with context in front of the reason.
    package func prefixed(by context: String) -> KeychainFailure {
        var failure = self
        failure.reason = "\(context): \(reason)"
        return failure
    }

    /// Returns this failure with its subject and path, where its reason names them already.
    ///
    /// Returns the failure unchanged if it has a path.
    package func about(_ subject: Subject, _ path: String) -> KeychainFailure {
        guard self.path == nil else { return self }
        var failure = self
        failure.path = path
        failure.subject = subject
        return failure
    }

    package func withRemedy(_ remedy: KeychainRemedy) -> KeychainFailure {
        var failure = self
        failure.remedy = remedy
        return failure
    }

    /// The failure of a call that needs authentication and has not asked a person yet.
    package static func authenticationRequired(
        _ needs: AuthenticationNeeds, file: StaticString = #fileID, line: UInt = #line
    ) -> KeychainFailure {
        var failure = KeychainFailure(
            .interactionNotAllowed, "an item requires authentication, and this call may not ask for it", refusal: .notInteractive,
            file: file,
            line: line)
        failure.needs = needs
        return failure
    }

    package var description: String { "\(reason) (\(status.rawValue))" }

    package static func == (left: KeychainFailure, right: KeychainFailure) -> Bool { left.status == right.status }
}

/// What is refused before anybody is asked.
extension KeychainFailure {
    /// Without a passcode nobody can prove to be there.
    package static func passcodeNotSet(file: StaticString = #fileID, line: UInt = #line) -> KeychainFailure {
        KeychainFailure(
            .authFailed, "no passcode is set, and without one nobody can prove to be there", refusal: .passcodeNotSet, file: file,
            line: line)
    }

    /// What nobody here could ever satisfy.
    package static func biometryNotAvailable(file: StaticString = #fileID, line: UInt = #line) -> KeychainFailure {
        KeychainFailure(
            .authFailed, "biometry and companions release no key here: an item that needs one could never be read",
            refusal: .biometryNotAvailable, file: file, line: line)
    }
}

/// What helps after a failure, where the status does not tell.
package enum KeychainRemedy: Hashable, Sendable {
    /// The key holder has no room for unlocked keys: make room there, or use the passcode for each call.
    case makeRoomForKeys
    /// The keychain was locked, but programs that keep keys in their own memory were not told: end them, or lock again.
    case lockAgain
    /// The administrator's file is to be corrected.
    case correctPolicy
    /// A newer version wrote what this one cannot read.
    case useNewerVersion
    /// The file that was to be written, not the keychain, is where the failure lies.
    case writeElsewhere
    /// Another program uses the keychain: end it.
    case closeElsewhere
    /// What is in the files has not the checksums it should have: a repair tells whether that is all.
    case repair
    /// What the protector held is lost: the recovery key restores access.
    case useRecoveryKey
    /// The TPM is there, perhaps, but not for this program now.
    case reachTPM
}

/// What became of a call: Apple's `OSStatus` codes under Swift names.
///
/// Open on purpose: a code that has no name here still travels unchanged.
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
