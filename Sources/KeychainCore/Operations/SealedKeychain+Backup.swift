// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// An item as a portable backup holds it: in clear, so only ever inside an encrypted file.
package struct BackupItem: Sendable {
    package let reference: PersistentReference
    package let accessibility: Accessibility
    /// All of them, dates and flags included.
    package let attributes: ItemAttributes
    package let secret: Data?

    package init(reference: PersistentReference, accessibility: Accessibility, attributes: ItemAttributes, secret: Data?) {
        self.reference = reference
        self.accessibility = accessibility
        self.attributes = attributes
        self.secret = secret
    }
}

/// What a portable backup took, and what stayed behind, and why.
package struct BackupSummary: Hashable, Sendable {
    package var savedCount = 0
    /// Their class says that they never leave this device.
    package var thisDeviceOnlyCount = 0
    /// They have access control, whose keys are this device's.
    package var constrainedCount = 0
    /// They cannot be opened: damaged, or written by a newer version.
    package var unreadableCount = 0

    package init() {}

    package var omittedCount: Int { thisDeviceOnlyCount + constrainedCount + unreadableCount }
}

/// What restoring a backup did, or would do.
package struct RestoreSummary: Hashable, Sendable {
    /// An item that the backup has and that was left as it is in the keychain.
    package struct Conflict: Hashable, Sendable {
        package let service: String
        package let account: String
        package let reason: Reason
    }

    package enum Reason: Hashable, Sendable {
        /// The keychain's was changed later.
        case newerInKeychain
        /// Both were changed at the same time, and are not the same.
        case differentOfSameDate
        /// The keychain's has access control, so what it holds is not known here.
        case protectedInKeychain
    }

    package var addedCount = 0
    /// The keychain had an older one.
    package var replacedCount = 0
    package var unchangedCount = 0
    package var conflicts: [Conflict] = []

    package init() {}
}

/// Taking a backup of the items of all programs, and putting one back.
extension SealedKeychain {
    /// Hands over every item that may migrate to another device, and counts the others.
    ///
    /// Throws `.interactionNotAllowed` when one that may migrate is locked: a backup without it would look complete.
    package func forEachBackupItem(
        _ body: (BackupItem) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> BackupSummary {
        let keychain = scopedToCall
        var summary = BackupSummary()
        try store.read { reading throws(KeychainFailure) in
            guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
            let query = RowQuery(isTombstone: false)
            summary.unreadableCount += try reading.forEachReadableRow(matching: query, includingSecrets: true) {
                row throws(KeychainFailure) in
                let header = row.header
                if header.accessibility.isThisDeviceOnly {
                    summary.thisDeviceOnlyCount += 1
                } else if header.constraints != nil {
                    summary.constrainedCount += 1
                } else {
                    switch try keychain.open(row, includingSecret: true) {
                    case .opened(let opened):
                        try body(
                            BackupItem(
                                reference: header.reference, accessibility: header.accessibility, attributes: opened.attributes,
                                secret: opened.secret))
                        summary.savedCount += 1
                    case .damaged, .unsupported, .needsAuthentication: summary.unreadableCount += 1
                    case .locked(let failure): throw failure
                    }
                }
                return .proceed
            }
        }
        return summary
    }

    /// Puts items back in one transaction: `body` calls its argument for each.
    ///
    /// Nothing that the keychain has is overwritten by something older.
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

    /// What `restore` would do.
    ///
    /// Writes nothing.
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

/// One restore at work.
private struct ItemRestorer {
    let keychain: SealedKeychain
    let reading: any ItemReading
    /// Nil: only look.
    let writing: (any ItemWriting)?
    var summary = RestoreSummary()

    /// The item in the place of what has its primary key, unless that is newer.
    mutating func restore(_ item: BackupItem) throws(KeychainFailure) {
        let itemClass = item.reference.itemClass
        let digests = try RowDigests(of: item.attributes, in: itemClass, using: keychain.digests)
        guard let present = try firstRow(digests.samePrimaryKey(in: itemClass)) else { return try add(item) }
        switch try keychain.openForWriting(present) {
        case .opened where present.header.isTombstone:
            // What was deleted on purpose after the backup was taken comes back: that is what restoring is for.
            try remove(present)
            try add(item)
        case .opened(let opened): try replace(present, opened, with: item)
        case .damaged:
            if let number = present.number { try writing?.quarantine(number: number, at: keychain.clock.now()) }
            try add(item)
        case .needsAuthentication: note(item, as: .protectedInKeychain)
        case .unsupported(let failure), .locked(let failure): throw failure
        }
    }

    private mutating func note(_ item: BackupItem, as reason: RestoreSummary.Reason) {
        let leading = PrimaryKey.leading(of: item.reference.itemClass)
        summary.conflicts.append(
            RestoreSummary.Conflict(
                service: item.attributes.text(leading.service) ?? "", account: item.attributes.text(leading.account) ?? "", reason: reason))
    }

    private mutating func replace(_ present: SealedRow, _ opened: OpenedRow, with item: BackupItem) throws(KeychainFailure) {
        let old = opened.attributes.seconds(.modificationDate) ?? -.infinity
        let new = item.attributes.seconds(.modificationDate) ?? -.infinity
        if new > old {
            // The item keeps the reference that this keychain's programs may have noted.
            let row = try seal(item, reference: present.header.reference)
            if let number = present.number { try writing?.replace(number: number, with: row) }
            summary.replacedCount += 1
        } else if opened.secret == item.secret, opened.attributes == item.attributes {
            summary.unchangedCount += 1
        } else {
            note(item, as: new < old ? .newerInKeychain : .differentOfSameDate)
        }
    }

    private mutating func add(_ item: BackupItem) throws(KeychainFailure) {
        var reference = item.reference
        // The item it names was moved to another primary key since: both stay, and only one can keep the reference.
        if try firstRow(RowQuery(itemClass: reference.itemClass, id: reference.id)) != nil {
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
            &attributes, secret: item.secret, reference: reference, control: AccessControl(item.accessibility))
    }

    private func firstRow(_ query: RowQuery) throws(KeychainFailure) -> SealedRow? {
        var found: SealedRow?
        try reading.forEachRow(matching: query, includingSecrets: true) { row throws(KeychainFailure) in
            found = row
            return .stop
        }
        return found
    }
}
