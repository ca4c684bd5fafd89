// SPDX-License-Identifier: Apache-2.0

/// Items that cannot be without a passcode.
extension SealedKeychain {
    private static let boundToPasscode = RowQuery(accessibility: .whenPasscodeSetThisDeviceOnly, isTombstone: false)

    /// The items of all programs that go with the passcode, by name.
    package func passcodeRemoval() throws(KeychainFailure) -> PasscodeRemoval {
        var items: [PasscodeRemoval.Item] = []
        try store.read { reading throws(KeychainFailure) in
            guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
            try reading.forEachRow(matching: Self.boundToPasscode, includingSecrets: false) { row throws(KeychainFailure) in
                items.append(PasscodeRemoval.Item(id: row.header.reference.id, name: try name(of: row)))
                return .proceed
            }
        }
        return PasscodeRemoval(items: items)
    }

    /// Deletes what `removal` names, within the transaction that removes the passcode.
    ///
    /// Throws `.notAvailable` when there is an item that it does not name: nobody has agreed to its loss.
    package func delete(_ removal: PasscodeRemoval, in writing: any ItemWriting) throws(KeychainFailure) {
        let agreed = Set(removal.items.map(\.id))
        let now = clock.now()
        var query = Self.boundToPasscode
        query.isTombstone = nil
        try writing.forEachRow(matching: query, includingSecrets: true) { row throws(KeychainFailure) in
            guard let number = row.number else { return .proceed }
            guard row.header.isTombstone || agreed.contains(row.header.reference.id) else {
                throw KeychainFailure(
                    .notAvailable, "an item that needs the passcode was added in the meantime; nothing was changed, so look again")
            }
            switch try open(row, includingSecret: true) {
            case .opened: try writing.remove(number: number)
            case .damaged, .unsupported, .locked: try writing.quarantine(number: number, at: now)
            }
            return .proceed
        }
    }

    private func name(of row: SealedRow) throws(KeychainFailure) -> PasscodeRemoval.Name? {
        guard case .opened(let opened) = try open(row, includingSecret: false) else { return nil }
        let leading = PrimaryKey.leading(of: row.header.reference.itemClass)
        return PasscodeRemoval.Name(
            service: opened.attributes.text(leading.service) ?? "", account: opened.attributes.text(leading.account) ?? "")
    }
}
