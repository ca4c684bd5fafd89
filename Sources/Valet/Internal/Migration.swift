// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// Brings items from one place of the keychain into a valet: all of them, or the keychain is as it was before.
///
/// Everything is read and checked first. An item that was not read and copied is never removed.
struct Migration {
    typealias Mapping = (MigratableKeyValuePair<AnyHashable>) throws -> MigratableKeyValuePair<String>?

    let source: MigrationQuery
    let destination: SandboxedKeychain
    /// How somebody may be asked if copies have to go whose items only a person can release: they are removed only if nobody has
    /// written to them, which cannot be seen otherwise.
    var undoing = AskingOptions.unsaid

    /// Copies or moves items with their keys and values as they are.
    func run(removingOriginals: Bool) throws {
        let copies = try plan { pair in
            // Items of other programs may have accounts that are no text.
            guard let key = pair.key as? String else { throw MigrationError.keyToMigrateInvalid }
            return MigratableKeyValuePair(key: key, value: pair.value)
        }
        try carryOut(copies, removingOriginals: removingOriginals)
    }

    /// Copies what `mapping` makes of the items, and leaves the items where they are.
    func run(_ mapping: Mapping) throws {
        try carryOut(plan(mapping), removingOriginals: false)
    }

    /// What has to be written, after every check.
    private func plan(_ mapping: Mapping) throws -> [PlannedCopy] {
        var copies: [PlannedCopy] = []
        var keys: Set<ExactString> = []
        for item in try source.readItems() {
            guard let account = item.account else { throw MigrationError.keyToMigrateInvalid }
            guard account != AnyHashable(Canary.key) else { continue }
            guard let pair = try mapping(MigratableKeyValuePair(key: account, value: item.value ?? Data())) else { continue }
            guard !pair.key.isEmpty else { throw MigrationError.keyToMigrateInvalid }
            guard keys.insert(ExactString(pair.key)).inserted else { throw MigrationError.duplicateKeyToMigrate }
            guard !pair.value.isEmpty else { throw MigrationError.dataToMigrateInvalid }
            guard try !destination.containsObject(forKey: pair.key) else { throw MigrationError.keyToMigrateAlreadyExistsInValet }
            copies.append(PlannedCopy(original: item, key: pair.key, value: pair.value))
        }
        return copies
    }

    private func carryOut(_ copies: [PlannedCopy], removingOriginals: Bool) throws {
        var journal = MigrationJournal(destination: destination, undoing)
        do {
            for copy in copies { try journal.write(copy, removingOriginal: removingOriginals) }
            if removingOriginals { try journal.removeOriginals() }
        } catch {
            journal.undo()
            throw error
        }
    }
}
