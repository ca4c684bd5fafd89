// SPDX-License-Identifier: Apache-2.0

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet {
    /// Brings existing keychain items into this valet: all that match, or none.
    ///
    /// As ``Valet/migrateObjects(matching:removeOnCompletion:)``. Writing asks nobody. Should copies have to go again, the person is
    /// asked once: only so can it be seen that nobody has stored a newer value.
    ///
    /// - Parameters:
    ///   - query: Which items: `kSecClass`, which must be generic password, and any other attributes. It must not ask for
    ///     data or references, nor for one item only, nor name an access control. With an `LAContext` in it, the person is asked
    ///     once for items that have to be released, and else for each.
    ///   - removeOnCompletion: Whether the items are removed from where they were.
    /// - Throws: A ``MigrationError``, or a ``KeychainError``: ``KeychainError/itemNotFound`` if nothing matches. The
    ///   keychain is as it was before, but an item put back has new dates.
    public func migrateObjects(matching query: [String: AnyHashable], removeOnCompletion: Bool) throws {
        try keychain.migration(from: MigrationQuery(query)).run(removingOriginals: removeOnCompletion)
    }

    /// Brings the values of a valet that asks nobody into this one: all of them, or none.
    ///
    /// - Parameters:
    ///   - valet: Where the values are.
    ///   - removeOnCompletion: Whether they are removed from there.
    /// - Throws: As ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjects(from valet: Valet, removeOnCompletion: Bool) throws {
        try keychain.migration(from: MigrationQuery(valet.keychain.items)).run(removingOriginals: removeOnCompletion)
    }
}
