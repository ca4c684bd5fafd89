// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// A migration of items into a valet, with rollback on failure.
///
/// All items are read and checked first. Only items that were read and copied are removed. Where the keychain has transactions, all changes are
/// one. Elsewhere a journal undoes them, as far as the keychain allows that: it may be locked by then, or the program ends.
struct Migration {
    typealias Mapping = (MigratableKeyValuePair<AnyHashable>) throws -> MigratableKeyValuePair<String>?

    let source: MigrationQuery
    let destination: NamespaceKeychain
    /// The prompt for a rollback of copies with access control.
    ///
    /// Only a read shows whether another program has written to a copy, in which case it is not removed.
    var undoing = PromptOptions.unspecified

    /// Copies or moves items with their keys and values unchanged.
    func run(removingOriginals: Bool) throws {
        let copies = try plan { pair in
            // Items of other programs may have accounts that are not text.
            guard let key = ItemKey.text(ofAccount: pair.key) else { throw MigrationError.keyToMigrateInvalid }
            return MigratableKeyValuePair(key: key, value: pair.value)
        }
        try execute(copies, removingOriginals: removingOriginals)
    }

    /// Copies the pairs that `mapping` returns, and does not remove the original items.
    func run(_ mapping: Mapping) throws {
        try execute(plan(mapping), removingOriginals: false)
    }

    /// Reads and checks all items and returns the copies to write.
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

    private func execute(_ copies: [PlannedCopy], removingOriginals: Bool) throws {
        func changes(_ journal: inout MigrationJournal) throws {
            for copy in copies { try journal.write(copy, removingOriginal: removingOriginals) }
            if removingOriginals { try journal.removeOriginals() }
        }
        var failure: (any Error)?
        let outcome = withTransaction {
            var journal = MigrationJournal(destination: destination)
            do {
                try changes(&journal)
                return true
            } catch {
                failure = error
                return false
            }
        }
        switch outcome {
        case .committed: return
        case .rolledBack: throw failure ?? KeychainError.couldNotAccessKeychain
        case .failed(let status): throw KeychainError(statusOfWriting: status)
        case .unsupported:
            var journal = MigrationJournal(destination: destination, undoing)
            do {
                try changes(&journal)
            } catch {
                journal.undo()
                throw error
            }
        }
    }
}

/// A value to write in a migration, and its original item.
struct PlannedCopy {
    let original: StoredItem
    let key: String
    let value: Data
}

/// A journal of the steps of a migration that can undo the steps done so far.
struct MigrationJournal {
    private enum Step {
        case written(StoredItem, from: StoredItem)
        case writtenAndRemoved(StoredItem, from: StoredItem)
        /// Two items with the same primary key cannot coexist, so the original was changed into the copy.
        case movedInPlace(StoredItem)
    }

    private let destination: NamespaceKeychain
    /// The query entries to access the copies during a rollback.
    private let accessOptions: [String: Any]
    private var steps: [Step] = []

    init(destination: NamespaceKeychain, _ promptOptions: PromptOptions = .unspecified) {
        self.destination = destination
        accessOptions = destination.items.keychainSelector.merging(promptOptions.entries) { _, new in new }
    }

    /// Writes one copy.
    ///
    /// Does not replace a value that another program has stored since the check.
    mutating func write(_ copy: PlannedCopy, removingOriginal: Bool) throws {
        let identity = destination.items.forAccount(copy.key)
        var attributes = try destination.newItem(forKey: copy.key, value: copy.value)
        attributes[kSecReturnAttributes as String] = true
        switch SecItemClient.addReturningAttributes(attributes) {
        case (errSecSuccess, let stored):
            let item = StoredItem(attributes: stored ?? identity, value: copy.value, accessOptions: accessOptions)
            steps.append(.written(item, from: copy.original))
        case (errSecDuplicateItem, _):
            guard removingOriginal, copy.original.hasPrimaryKey(ofKey: copy.key, in: destination.namespace) else {
                throw MigrationError.keyToMigrateAlreadyExistsInValet
            }
            try changeAccessibilityInPlace(copy.original)
        case (let status, _):
            throw KeychainError(statusOfWriting: status)
        }
    }

    private mutating func changeAccessibilityInPlace(_ item: StoredItem) throws {
        switch item.changeAccessibilityIfUnchanged(to: destination.namespace.accessibilityAttribute) {
        case errSecSuccess: steps.append(.movedInPlace(item))
        case errSecItemNotFound: throw MigrationError.removalFailed
        case let status: throw KeychainError(statusOfWriting: status)
        }
    }

    /// Removes the items that were copied, one by one: a query for all of them would also find items added since.
    mutating func removeOriginals() throws {
        for index in steps.indices {
            guard case .written(let copy, let original) = steps[index] else { continue }
            guard original.removeIfUnchanged() else { throw MigrationError.removalFailed }
            steps[index] = .writtenAndRemoved(copy, from: original)
        }
    }

    /// Undoes all steps, the last one first.
    ///
    /// Removes a copy only if its original exists.
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
