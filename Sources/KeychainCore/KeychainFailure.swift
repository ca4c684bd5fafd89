// SPDX-License-Identifier: Apache-2.0

/// Why a keychain operation did not succeed: a status for programs, a reason for people, the place for us.
///
/// Two failures are equal when their status is, so that tests and callers depend on the meaning and wording may change.
/// The reason never holds a secret, a key or an attribute's value.
package struct KeychainFailure: Error, Equatable, Sendable, CustomStringConvertible {
    package let status: KeychainStatus
    package private(set) var reason: String
    package let place: String
    /// The connection or the keybag in use is no longer the store's: the same call may succeed once the store is opened anew.
    package let callsForReopening: Bool
    /// The store as a whole is damaged: the status is that of a keychain that cannot be used, and a person wants to know the difference.
    package let isDamage: Bool
    /// Nil: the status tells what helps.
    ///
    /// With some remedies what was asked for is done in part, and "nothing was changed" would be wrong.
    package private(set) var remedy: KeychainRemedy?
    /// What has to be released before the same call can succeed; the status is that of a call that may not ask.
    package private(set) var needs: AuthenticationNeeds?
    /// Why somebody could not be authenticated, where the status does not tell.
    package private(set) var refusal: AuthenticationRefusal?

    package init(
        _ status: KeychainStatus, _ reason: String, callsForReopening: Bool = false, isDamage: Bool = false,
        remedy: KeychainRemedy? = nil, refusal: AuthenticationRefusal? = nil, file: StaticString = #fileID, line: UInt = #line
    ) {
        self.status = status
        self.reason = reason
        self.callsForReopening = callsForReopening
        self.isDamage = isDamage
        self.remedy = remedy
        self.refusal = refusal
        self.place = "\(file):\(line)"
    }

    /// The same failure, with what it is about in front of the reason, unless the reason names it.
    package func naming(_ subject: String) -> KeychainFailure {
        var failure = self
        if !reason.contains(subject) { failure.reason = "\(subject): \(reason)" }
        return failure
    }

    /// The same failure, with what helps.
    package func advising(_ remedy: KeychainRemedy) -> KeychainFailure {
        var failure = self
        failure.remedy = remedy
        return failure
    }

    /// Nobody has been asked yet for what these items need.
    package static func needing(
        _ needs: AuthenticationNeeds, file: StaticString = #fileID, line: UInt = #line
    ) -> KeychainFailure {
        var failure = KeychainFailure(
            .interactionNotAllowed, "an item has access control, and nobody may be asked", refusal: .notInteractive, file: file, line: line)
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
