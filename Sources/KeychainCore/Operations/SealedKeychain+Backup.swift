// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// An item of a portable backup, in plaintext.
///
/// It is only stored inside an encrypted file.
package struct BackupItem: Sendable {
    package let reference: PersistentReference
    package let accessibility: ItemAccessibility
    /// All attributes, including dates and flags.
    package let attributes: ItemAttributes
    package let secret: Data?

    package init(reference: PersistentReference, accessibility: ItemAccessibility, attributes: ItemAttributes, secret: Data?) {
        self.reference = reference
        self.accessibility = accessibility
        self.attributes = attributes
        self.secret = secret
    }
}

/// The numbers of saved and omitted items of a portable backup.
package struct BackupSummary: Hashable, Sendable {
    /// The name of an omitted item.
    package struct Name: Hashable, Sendable {
        package let service: String
        package let account: String
    }

    /// The largest number of names in `thisDeviceOnlyNames`.
    package static let largestNameCount = 10

    package var savedCount = 0
    /// Omitted items whose class must not leave this device.
    package var thisDeviceOnlyCount = 0
    /// The names of the first of these items, except those that are locked or have access control.
    ///
    /// Not part of the file.
    package var thisDeviceOnlyNames: [Name] = []
    /// Omitted items with access control, whose keys belong to this device.
    package var constrainedCount = 0
    /// Omitted items that are damaged or cannot be opened.
    package var unreadableCount = 0
    /// The rows that were authenticated, saved or not, each item counted once.
    ///
    /// Not part of the file.
    package var intactRowCount = 0
    /// False if items may be missing or old, because a part of the file is damaged or its content is refused.
    ///
    /// Not part of the file.
    package var isOfLastChange = true
    /// Whether the backup contains every item that may leave the device.
    package var isComplete: Bool { unreadableCount == 0 && isOfLastChange }

    package init() {}
}

/// The result of restoring a backup, or of its preview.
package struct RestoreSummary: Hashable, Sendable {
    /// An item of the backup that was not restored, because the keychain's item was kept.
    package struct Conflict: Hashable, Sendable {
        package let service: String
        package let account: String
        package let reason: Reason
    }

    package enum Reason: Hashable, Sendable {
        /// The keychain's item is newer.
        case newerInKeychain
        /// Both have the same modification date, but differ.
        case differentOfSameDate
        /// The keychain's item has access control, so its content cannot be compared.
        case protectedInKeychain
        /// The keychain's item is under keys that the keychain does not have.
        case unsupportedInKeychain
    }

    package var addedCount = 0
    /// Items of which the keychain had an older version.
    package var replacedCount = 0
    package var unchangedCount = 0
    package var conflicts: [Conflict] = []

    package init() {}
}

/// Backup and restoration of the items of all programs.
extension SealedKeychain {
    /// Calls `body` with every item that may migrate to another device, and counts the others.
    ///
    /// Throws `.interactionNotAllowed` if an item that may migrate is locked: a backup without it would look complete.
    ///
    /// `refusedKeybag` is the copy of the keybag in use if the content is refused. It need not be the one stored last then, because a person saves
    /// what is left. But it must be in the store, or another process has changed the keys since.
    package func forEachBackupItem(
        under refusedKeybag: StoredKeybag? = nil, _ body: (BackupItem) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> BackupSummary {
        let keychain = scopedToCall
        var summary = BackupSummary()
        // In a damaged file a search can return a row twice.
        var seen: Set<ItemID> = []
        try store.read { reading throws(KeychainFailure) in
            let isCurrent =
                if let refusedKeybag {
                    try reading.keybag().copies.contains { refusedKeybag.copies.contains($0) }
                } else {
                    try isKeybagCurrent(reading)
                }
            guard isCurrent else { throw Self.keybagChanged }
            let skipped = try reading.forEachReadableRow(matching: RowQuery(), includingSecrets: true) {
                row throws(KeychainFailure) in
                let header = row.header
                // Columns that are not encrypted decide which rows are omitted, so they are verified first.
                guard cipher.isIntact(row) else {
                    summary.unreadableCount += 1
                    return .proceed
                }
                guard seen.insert(header.reference.id).inserted else { return .proceed }
                summary.intactRowCount += 1
                if header.isTombstone {
                    return .proceed
                } else if header.accessibility.isThisDeviceOnly {
                    var attributes: ItemAttributes?
                    if case .opened(let opened)? = try? keychain.open(row, includingSecret: false, in: reading) {
                        attributes = opened.attributes
                    }
                    // A device that a backup is restored on joins the circle with keys of its own.
                    guard !Entitlements.isInternal(attributes?.text(.accessGroup) ?? "") else { return .proceed }
                    summary.thisDeviceOnlyCount += 1
                    if let attributes, summary.thisDeviceOnlyNames.count < BackupSummary.largestNameCount {
                        summary.thisDeviceOnlyNames.append(
                            BackupSummary.Name(
                                service: attributes.text(.service) ?? attributes.text(.server) ?? "",
                                account: attributes.text(.account) ?? ""))
                    }
                } else if header.constraints != nil {
                    summary.constrainedCount += 1
                } else {
                    switch try keychain.open(row, includingSecret: true, in: reading) {
                    case .opened(let opened):
                        try body(
                            BackupItem(
                                reference: header.reference, accessibility: header.accessibility, attributes: opened.attributes,
                                secret: opened.secret))
                        summary.savedCount += 1
                    case .damaged, .unsupported, .needsAuthentication, .destroyed: summary.unreadableCount += 1
                    case .locked(let failure): throw failure
                    }
                }
                return .proceed
            }
            summary.unreadableCount += skipped.damagedPageRowCount
            if refusedKeybag != nil || summary.unreadableCount > 0 { try Self.compare(&summary, withStateOf: reading, refusedKeybag) }
        }
        return summary
    }

    /// Counts the items that are missing, and notes whether the others are known to be those of the last change.
    ///
    /// A row may have been removed beside a damaged page. And SQLite does not notice every damage of pages whose checksums are ignored: a search
    /// can end early, or return a row twice.
    private static func compare(
        _ summary: inout BackupSummary, withStateOf reading: any ItemReading, _ refusedKeybag: StoredKeybag?
    ) throws(KeychainFailure) {
        summary.isOfLastChange = false
        do throws(KeychainFailure) {
            let keybag = if let refusedKeybag { refusedKeybag } else { try reading.keybag() }
            guard let state = try reading.stateReport(using: keybag) else { return }
            summary.unreadableCount = max(summary.unreadableCount, Int(clamping: state.rowCount) - summary.intactRowCount)
            // With unreadable rows, the sum of the others says nothing about them.
            summary.isOfLastChange = summary.unreadableCount == 0 && state.isOfLastChange
        } catch {
            guard error.isDamage else { throw error }
        }
    }

    /// Restores items in one transaction.
    ///
    /// `body` calls its argument with each item.
    ///
    /// A newer item in the keychain is never overwritten.
    package func restore(
        _ body: ((BackupItem) throws(KeychainFailure) -> Void) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> RestoreSummary {
        let keychain = scopedToCall
        return try keychain.write { writing throws(KeychainFailure) in
            var restorer = ItemRestorer(keychain: keychain, reading: writing, writing: writing)
            try body { item throws(KeychainFailure) in try restorer.restore(item) }
            return restorer.summary
        }
    }

    /// Returns the summary that `restore` would return, without writing.
    package func previewRestore(
        _ body: ((BackupItem) throws(KeychainFailure) -> Void) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> RestoreSummary {
        let keychain = scopedToCall
        return try store.read { reading throws(KeychainFailure) in
            guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
            var restorer = ItemRestorer(keychain: keychain, reading: reading, writing: nil)
            try body { item throws(KeychainFailure) in try restorer.restore(item) }
            return restorer.summary
        }
    }
}

/// Restores items within one transaction, or computes a preview.
private struct ItemRestorer {
    let keychain: SealedKeychain
    let reading: any ItemReading
    /// Nil for a preview.
    let writing: (any ItemWriting)?
    var summary = RestoreSummary()

    /// Restores an item unless the keychain's item with the same primary key is newer.
    mutating func restore(_ item: BackupItem) throws(KeychainFailure) {
        let itemClass = item.reference.itemClass
        let digests = try RowDigests(of: item.attributes, in: itemClass, using: keychain.digests)
        guard let present = try reading.firstRow(matching: digests.samePrimaryKey(in: itemClass)) else { return try add(item) }
        switch try keychain.openForWriting(present, in: reading) {
        case .opened where present.header.isTombstone:
            // An item that was deleted after the backup is restored too.
            try remove(present)
            try add(item)
        case .opened(let opened): try replace(present, opened, with: item)
        case .damaged:
            if let number = present.number { try writing?.quarantine(number: number, at: keychain.clock.now()) }
            try add(item)
        case .destroyed:
            try remove(present)
            try add(item)
        case .needsAuthentication: countConflict(item, as: .protectedInKeychain)
        case .unsupported: countConflict(item, as: .unsupportedInKeychain)
        case .locked(let failure): throw failure
        }
    }

    private mutating func countConflict(_ item: BackupItem, as reason: RestoreSummary.Reason) {
        let leading = PrimaryKey.leading(of: item.reference.itemClass)
        summary.conflicts.append(
            RestoreSummary.Conflict(
                service: item.attributes.text(leading.service) ?? "", account: item.attributes.text(leading.account) ?? "", reason: reason))
    }

    private mutating func replace(_ present: SealedRow, _ opened: OpenedRow, with item: BackupItem) throws(KeychainFailure) {
        let old = opened.attributes.seconds(.modificationDate) ?? -.infinity
        let new = item.attributes.seconds(.modificationDate) ?? -.infinity
        if new > old {
            // The item keeps its reference, which programs may have stored.
            let row = try seal(item, reference: present.header.reference)
            if let number = present.number { try writing?.replace(number: number, with: row) }
            summary.replacedCount += 1
        } else if opened.secret == item.secret, opened.attributes == item.attributes {
            summary.unchangedCount += 1
        } else {
            countConflict(item, as: new < old ? .newerInKeychain : .differentOfSameDate)
        }
    }

    private mutating func add(_ item: BackupItem) throws(KeychainFailure) {
        var reference = item.reference
        // Another item has this reference: it was moved to another key. It keeps the reference; the restored item gets a new one.
        if try reading.firstRow(matching: RowQuery(itemClass: reference.itemClass, id: reference.id)) != nil {
            reference = PersistentReference(itemClass: reference.itemClass, id: .random())
        }
        try writing?.insert(try seal(item, reference: reference))
        summary.addedCount += 1
    }

    private func remove(_ row: SealedRow) throws(KeychainFailure) {
        if let number = row.number { try writing?.remove(number: number) }
    }

    private func seal(_ item: BackupItem, reference: PersistentReference) throws(KeychainFailure) -> SealedRow {
        var attributes = item.attributes
        return try keychain.seal(
            &attributes, secret: item.secret, reference: reference, control: AccessControl(item.accessibility), lockEpoch: reading)
    }
}
