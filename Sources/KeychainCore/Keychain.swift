// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

/// A keychain: four synchronous verbs over typed requests.
///
/// The in-process engine implements it, and so can a client of a daemon; nothing above knows which one it talks to.
package protocol Keychain: Sendable {
    /// Stores a new item. Throws `.duplicateItem` when one with the same primary key is there.
    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem

    /// The items that match, oldest first. Throws `.itemNotFound` only when absence is proved.
    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem]

    /// Changes every item that matches, all or none.
    func update(_ request: UpdateRequest) throws(KeychainFailure)

    /// Deletes every item that matches, all or none.
    func delete(_ request: DeleteRequest) throws(KeychainFailure)
}

/// Which keychain a call goes to: the one bound to the task, else the process's own.
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

    /// The keychain bound to the task; nil: use the process's own.
    ///
    /// Throws `.notAvailable` in a process under test when nothing is bound: the user's own keychain is out of reach there.
    package static func boundKeychain() throws(KeychainFailure) -> (any Keychain)? {
        if let bound { return bound }
        guard keychain_testing_scope_is_required() else { return nil }
        throw KeychainFailure(
            .notAvailable,
            "this process uses KeychainTesting and the call came from outside a keychain scope; carry the scope there with keychain.perform { }"
        )
    }
}
