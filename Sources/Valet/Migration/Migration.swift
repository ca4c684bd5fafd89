// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// Brings items from one place of the keychain into a valet: all of them, or the keychain is as it was before.
///
/// Everything is read and checked first. An item that was not read and copied is never removed.
struct Migration {
    typealias Mapping = (MigratableKeyValuePair<AnyHashable>) throws -> MigratableKeyValuePair<String>?

    let source: MigrationQuery
    let destination: NamespaceKeychain
    /// How somebody may be asked if copies have to go whose items only a person can release: they are removed only if nobody has
    /// written to them, which cannot be seen otherwise.
    var undoing = PromptOptions.unspecified

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

/// A value to be written in a migration, and the item it comes from.
struct PlannedCopy {
    let original: StoredItem
    let key: String
    let value: Data
}

/// Carries out a migration step by step, and knows how to undo the steps done so far.
struct MigrationJournal {
    private enum Step {
        case written(StoredItem, from: StoredItem)
        case writtenAndRemoved(StoredItem, from: StoredItem)
        /// Two items with the same primary key cannot be there at once, so the one was made into the other.
        case movedInPlace(StoredItem)
    }

    private let destination: NamespaceKeychain
    /// How the copies are reached when they have to go.
    private let accessOptions: [String: Any]
    private var steps: [Step] = []

    init(destination: NamespaceKeychain, _ asking: PromptOptions = .unspecified) {
        self.destination = destination
        accessOptions = destination.items.keychainSelector.merging(asking.entries) { _, new in new }
    }

    /// Writes one copy.
    ///
    /// Never over a value that somebody has stored since the check.
    mutating func write(_ copy: PlannedCopy, removingOriginal: Bool) throws {
        let identity = destination.items.forAccount(copy.key)
        var attributes = try destination.newItem(forKey: copy.key, value: copy.value)
        attributes[kSecReturnAttributes as String] = true
        switch SecItem.addReturningAttributes(attributes) {
        case (errSecSuccess, let stored):
            let item = StoredItem(attributes: stored ?? identity, value: copy.value, accessOptions: accessOptions)
            steps.append(.written(item, from: copy.original))
        case (errSecDuplicateItem, _):
            guard removingOriginal, copy.original.hasPrimaryKey(ofKey: copy.key, in: destination.sandbox) else {
                throw MigrationError.keyToMigrateAlreadyExistsInValet
            }
            try changeAccessibilityInPlace(copy.original)
        case (let status, _):
            throw KeychainError(statusOfWriting: status)
        }
    }

    private mutating func changeAccessibilityInPlace(_ item: StoredItem) throws {
        switch item.changeAccessibilityIfUnchanged(to: destination.sandbox.accessibilityAttribute) {
        case errSecSuccess: steps.append(.movedInPlace(item))
        case errSecItemNotFound: throw MigrationError.removalFailed
        case let status: throw KeychainError(statusOfWriting: status)
        }
    }

    /// Removes the items that were copied, each by itself: a query for all of them would also find what was added since.
    mutating func removeOriginals() throws {
        for index in steps.indices {
            guard case .written(let copy, let original) = steps[index] else { continue }
            guard original.removeIfUnchanged() else { throw MigrationError.removalFailed }
            steps[index] = .writtenAndRemoved(copy, from: original)
        }
    }

    /// Undoes all steps, the last one first.
    ///
    /// A copy goes only when its original is there.
    func undo() {
        for step in steps.reversed() {
            switch step {
            case .written(let copy, _):
                _ = copy.removeIfUnchanged()
            case .writtenAndRemoved(let copy, let original):
                if original.restore() { _ = copy.removeIfUnchanged() }
            case .movedInPlace(let item):
                item.restoreAccessibility()
            }
        }
    }
}
