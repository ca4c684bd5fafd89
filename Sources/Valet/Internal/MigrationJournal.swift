// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// Carries out a migration step by step, and knows how to undo the steps done so far.
struct MigrationJournal {
    private enum Step {
        case written(StoredItem, from: StoredItem)
        case writtenAndRemoved(StoredItem, from: StoredItem)
        /// Two items with the same primary key cannot be there at once, so the one was made into the other.
        case movedInPlace(StoredItem)
    }

    private let destination: SandboxedKeychain
    /// How the copies are reached when they have to go.
    private let accessOptions: [String: Any]
    private var steps: [Step] = []

    init(destination: SandboxedKeychain, _ asking: AskingOptions = .unsaid) {
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
            try moveInPlace(copy.original)
        case (let status, _):
            throw KeychainError(statusOfWriting: status)
        }
    }

    private mutating func moveInPlace(_ item: StoredItem) throws {
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
