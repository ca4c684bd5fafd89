// SPDX-License-Identifier: Apache-2.0

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
