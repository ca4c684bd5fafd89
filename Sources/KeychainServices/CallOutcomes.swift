// SPDX-License-Identifier: Apache-2.0

/// Why a call of Keychain Services failed, for libraries that report more than its status.
package struct CallFailure: Error, Sendable {
    /// A reason that callers handle in a way of its own.
    package enum Reason: Sendable {
        case notFound
        case alreadyExists
        /// An item with the same primary key has another accessibility, so the query of the caller does not find it.
        case otherAccessibility
        case locked
        case canceled
        /// A wrong passcode or password, or a factor that the item requires and that failed.
        case notAuthenticated
        case passcodeNotSet
        case cannotPrompt
        case damaged
        case readOnly
        case diskFull
        /// keychaind keeps no more for this user.
        case full
        /// The environment names no place for the keychain.
        case noPlace
        /// The key file, the credential, or the TPM does not release the key of the keychain.
        case protectorUnavailable
        case missingEntitlement
        /// A write may or may not have taken effect.
        case outcomeUnknown
        /// Other threads or processes were writing until the deadline.
        case busy
        case unavailable
    }

    /// The status of the call.
    package let status: Int32
    package let reason: Reason
    /// What the keychain reports, for people; nil if it only gives the status.
    ///
    /// Never a secret or the name of an item.
    package let detail: String?

    package init(status: Int32, reason: Reason, detail: String?) {
        self.status = status
        self.reason = reason
        self.detail = detail
    }

    /// The detail of ``Reason/otherAccessibility``.
    static let otherAccessibility = "an item with this key and service exists with another accessibility"

    /// What to do about ``Reason/otherAccessibility``.
    static func moveAdvice(where place: String) -> String {
        "Use a valet with its accessibility\(place), or move it from there with `migrateObjects(from:removeOnCompletion:)`."
    }
}

/// The outcome of calls in one transaction.
package enum TransactionOutcome {
    case committed
    /// The caller rejected it, or one of its calls failed. Nothing was changed.
    case rolledBack
    /// The transaction could not begin, or was not written.
    case failed(Int32)
    /// The keychain in use has no transactions.
    case unsupported
}
