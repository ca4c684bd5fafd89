// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

/// A keychain: four synchronous operations with typed requests.
///
/// The in-process engine implements it, and a client of a daemon could; callers do not depend on which one they use.
package protocol Keychain: Sendable {
    /// Stores a new item. Throws `.duplicateItem` if one with the same primary key exists.
    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem

    /// Returns the matching items, oldest first. Throws `.itemNotFound` only if it is certain that there is none.
    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem]

    /// Changes all matching items atomically.
    func update(_ request: UpdateRequest) throws(KeychainFailure)

    /// Deletes all matching items atomically.
    func delete(_ request: DeleteRequest) throws(KeychainFailure)
}

/// A keychain that reports changes.
package protocol ObservableKeychain: Keychain {
    /// Calls `onChange` soon after any process has changed or locked the keychain, until the observation is canceled.
    ///
    /// The call is on another thread, says nothing about the change, and may stand for several. Also called if the keychain is created,
    /// replaced, or restored, and sometimes without a change.
    func observeChanges(_ onChange: @escaping @Sendable () -> Void) throws(KeychainFailure) -> any ChangeObservation
}

/// An observation of a keychain; it ends when it is canceled, or with the last reference to it.
package protocol ChangeObservation: AnyObject, Sendable {
    func cancel()
}

/// The keychain that calls use: the one bound to the task, or else the process's own.
package enum CurrentKeychain {
    @TaskLocal package static var bound: (any Keychain)?

    /// Called after each SecItem call with its failure, or with nil if the call succeeded.
    ///
    /// A SecItem call logs its failure only where no observer is bound.
    @TaskLocal package static var observer: (@Sendable (KeychainFailure?) -> Void)?

    /// Runs `body` with `keychain` in place of the process's own.
    package static func with<Result>(_ keychain: any Keychain, _ body: () throws -> Result) rethrows -> Result {
        try $bound.withValue(keychain, operation: body)
    }

    /// Runs `body` with `keychain` in place of the process's own, and reports the outcome of each SecItem call to `observer`.
    package static func with<Result>(
        _ keychain: any Keychain, observer: @escaping @Sendable (KeychainFailure?) -> Void, _ body: () throws -> Result
    ) rethrows -> Result {
        try $observer.withValue(observer) { try with(keychain, body) }
    }

    /// Called as `observer` is; failures are logged nevertheless.
    @TaskLocal package static var listener: (@Sendable (KeychainFailure?) -> Void)?

    /// The keychain bound to the task; nil: use the process's own.
    ///
    /// Throws `.notAvailable` in a test process if none is bound: tests must never reach the user's own keychain.
    package static func boundKeychain() throws(KeychainFailure) -> (any Keychain)? {
        if let bound { return bound }
        guard keychain_testing_scope_is_required() else { return nil }
        throw KeychainFailure(
            .notAvailable,
            """
            this process uses KeychainTesting and the call came from outside a keychain scope; carry the scope there with \
            keychain.perform { }
            """)
    }
}
