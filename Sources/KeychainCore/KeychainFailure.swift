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
