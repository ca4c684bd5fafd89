// SPDX-License-Identifier: Apache-2.0

/// Removal of the items that exist only with a passcode.
extension SealedKeychain {
    /// Whether a row is useless without a passcode: because of its class, or because it requires user presence.
    private static func isBoundToPasscode(_ header: RowHeader) -> Bool {
        header.accessibility == .whenPasscodeSetThisDeviceOnly || header.accessControl.constraint?.needsPresence == true
    }

    /// Returns the items of all programs that removing the passcode would delete.
    package func passcodeRemoval() throws(KeychainFailure) -> PasscodeRemoval {
        var items: [PasscodeRemoval.Item] = []
        try store.read { reading throws(KeychainFailure) in
            guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
            try reading.forEachRow(matching: RowQuery(isTombstone: false), includingSecrets: false) { row throws(KeychainFailure) in
                guard Self.isBoundToPasscode(row.header) else { return .proceed }
                items.append(PasscodeRemoval.Item(id: row.header.reference.id, name: try name(of: row, in: reading)))
                return .proceed
            }
        }
        return PasscodeRemoval(items: items)
    }

    /// Deletes the items that `removal` names, within the transaction that removes the passcode.
    ///
    /// Throws `.notAvailable` if there is another such item, because its deletion was not confirmed.
    package func delete(_ removal: PasscodeRemoval, in writing: any ItemWriting) throws(KeychainFailure) {
        let agreed = Set(removal.items.map(\.id))
        let now = clock.now()
        try writing.forEachRow(matching: RowQuery(), includingSecrets: true) { row throws(KeychainFailure) in
            guard let number = row.number, Self.isBoundToPasscode(row.header) else { return .proceed }
            guard row.header.isTombstone || agreed.contains(row.header.reference.id) else {
                throw KeychainFailure(
                    .notAvailable, "an item that needs the passcode was added meanwhile: list the items again")
            }
            switch try open(row, includingSecret: true, in: writing) {
            case .opened: try writing.remove(number: number)
            // Unaltered; it only requires more than the passcode.
            case .needsAuthentication where cipher.isIntact(row), .destroyed where cipher.isIntact(row): try writing.remove(number: number)
            case .needsAuthentication, .damaged, .unsupported, .locked, .destroyed: try writing.quarantine(number: number, at: now)
            }
            return .proceed
        }
    }

    private func name(of row: SealedRow, in reading: any ItemReading) throws(KeychainFailure) -> PasscodeRemoval.Name? {
        guard case .opened(let opened) = try open(row, includingSecret: false, in: reading) else { return nil }
        let leading = PrimaryKey.leading(of: row.header.reference.itemClass)
        return PasscodeRemoval.Name(
            service: opened.attributes.text(leading.service) ?? "", account: opened.attributes.text(leading.account) ?? "")
    }
}
