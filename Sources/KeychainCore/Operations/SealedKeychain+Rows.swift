// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

/// The result of opening a row.
///
/// It distinguishes damage from locked and unsupported rows, because only a damaged row may be overwritten.
enum RowOpening {
    case opened(OpenedRow)
    case damaged(KeychainFailure)
    /// Access control of a newer version, or a class key that this keybag does not have. Never overwritten.
    case unsupported(KeychainFailure)
    /// The class key is locked. A key that could not be loaded for another reason is no state of the row: that failure is thrown.
    case locked(KeychainFailure)
    /// The keys of the row were destroyed, with the set of fingers that they belonged to: the item does not exist any more.
    case destroyed
    /// The row's access control is not satisfied. The failure has the `needs`, or none if it can never be satisfied on this platform.
    case needsAuthentication(KeychainFailure)
}

extension SealedKeychain {
    /// Opens a row of the session `reading`, and keeps the wanted attributes.
    ///
    /// Throws failures that say nothing about the row, such as a lack of memory or a failure of the holder.
    func open(
        _ row: SealedRow, includingSecret: Bool, keeping attributes: AttributeSelection = .all, in reading: any ItemReading
    ) throws(KeychainFailure) -> RowOpening {
        try opening(row, in: reading) { key throws(KeychainFailure) in
            try cipher.open(row, includingSecret: includingSecret, keeping: attributes, with: constraintKeys, under: key)
        }
    }

    /// Opens a row's secret and leaves its attributes sealed.
    ///
    /// Throws the errors of `open`.
    func openSecret(of row: SealedRow, in reading: any ItemReading) throws(KeychainFailure) -> RowOpening {
        try opening(row, in: reading) { key throws(KeychainFailure) in
            OpenedRow(attributes: ItemAttributes(), secret: try cipher.openSecret(of: row, with: constraintKeys, under: key))
        }
    }

    private static var altered: RowOpening { .damaged(KeychainFailure(.decode, "an item was altered", cause: .damaged)) }

    private func opening(
        _ row: SealedRow, in reading: any ItemReading, _ open: (borrowing ClassKey) throws(KeychainFailure) -> OpenedRow
    ) throws(KeychainFailure) -> RowOpening {
        let header = row.header
        guard header.formatVersion == RowHeader.formatVersion else {
            return Self.altered
        }
        var constraint: AccessControl.Constraint?
        if let constraints = header.constraints {
            guard let record = ConstraintRecord(encoded: constraints) else {
                guard try hasCorrectTag(row, in: reading) else { return Self.altered }
                return .unsupported(
                    KeychainFailure(.decode, "an item has access control that this version does not know", cause: .newerVersion))
            }
            constraint = record.constraint
            // The row names the cost of the key derivation, so it is authenticated before anything is derived.
            if constraintKeys.applicationPassword != nil, try !hasCorrectTag(row, in: reading) {
                return .damaged(KeychainFailure(.decode, "an item with a password was altered", cause: .damaged))
            }
        }
        let generation = header.classKeyGeneration
        guard keys.availability(of: header.accessibility, generation: generation, lockEpoch: reading) != .missing else {
            return .unsupported(KeychainFailure(.decode, "an item was written under a class key that this keybag does not have"))
        }
        do throws(KeychainFailure) {
            let provider = provider(for: header.accessibility, generation, constraint, reading)
            return .opened(try provider.withClassKey(for: header.accessibility, generation: generation, lockEpoch: reading, open))
        } catch {
            return try Self.classify(error, header, constraint)
        }
    }

    /// Whether the tag of a row is correct.
    ///
    /// The tag covers the secret, so a row that was read without its secret is read again.
    private func hasCorrectTag(_ row: SealedRow, in reading: any ItemReading) throws(KeychainFailure) -> Bool {
        guard row.sealedSecret.isEmpty else { return cipher.isIntact(row) }
        var isCorrect = false
        do throws(KeychainFailure) {
            try reading.forEachRow(matching: RowQuery(id: row.header.reference.id), includingSecrets: true) {
                complete throws(KeychainFailure) in
                if complete.header == row.header { isCorrect = cipher.isIntact(complete) }
                return .stop
            }
        } catch {
            guard error.isDamage else { throw error }
        }
        return isCorrect
    }

    /// The provider of a class key.
    ///
    /// A passcode that was entered for an item releases its class key too, while the keychain stays locked.
    func provider(
        for accessibility: ItemAccessibility, _ generation: UInt32, _ constraint: AccessControl.Constraint?,
        _ lockEpoch: any LockEpochReading
    ) -> any KeyProvider {
        guard constraint?.needsPresence == true, let released = constraintKeys.presence?.classKeys,
            keys.availability(of: accessibility, generation: generation, lockEpoch: lockEpoch) == .locked,
            released.availability(of: accessibility, generation: generation, lockEpoch: lockEpoch) == .available
        else { return keys }
        return released
    }

    private static func classify(
        _ failure: KeychainFailure, _ header: RowHeader, _ constraint: AccessControl.Constraint?
    ) throws(KeychainFailure) -> RowOpening {
        let needsClassKey = AuthenticationNeeds(passcodeFor: [header.accessibility])
        if var needs = failure.needs {
            needs.addPasscodeClasses([header.accessibility])
            return .needsAuthentication(.authenticationRequired(needs))
        }
        switch failure.status {
        // The passcode that the item requires anyway releases the class key too, even if the holder fails.
        case .interactionNotAllowed where constraint?.needsPresence == true:
            return .needsAuthentication(.authenticationRequired(needsClassKey))
        case .interactionNotAllowed where failure.cause == .locked: return .locked(failure)
        case .decode: return .damaged(failure)
        case .itemNotFound where constraint != nil: return .destroyed
        // The constraint can never be satisfied on this platform; the row is not damaged.
        case .authFailed: return .needsAuthentication(failure)
        default: throw failure
        }
    }

    /// Opens a row that may be overwritten.
    ///
    /// The row must have been read with its secret, which the row tag covers. A row with a wrong tag is damaged, whatever its columns
    /// claim about access control and generation.
    func openForWriting(_ row: SealedRow, in reading: any ItemReading) throws(KeychainFailure) -> RowOpening {
        let opening = try open(row, includingSecret: true, in: reading)
        switch opening {
        case .unsupported, .locked, .needsAuthentication, .destroyed:
            guard !cipher.isIntact(row) else { return opening }
            return .damaged(KeychainFailure(.decode, "an item is damaged"))
        case .opened, .damaged:
            return opening
        }
    }
}

extension ItemReading {
    /// Returns the first matching row with its secret, which the row tag covers; nil if there is none.
    func firstRow(matching query: RowQuery) throws(KeychainFailure) -> SealedRow? {
        var found: SealedRow?
        try forEachRow(matching: query, includingSecrets: true) { row throws(KeychainFailure) in
            found = row
            return .stop
        }
        return found
    }
}

extension SealedKeychain {
    /// Verifies the rows that the search key finds, of a search that found no item because another condition excluded such rows.
    ///
    /// The excluding columns are not encrypted, so an attacker who can write the file could have altered them. Throws `.decode` if the tag
    /// of a row is wrong.
    func requireIntactExcludedRows(of search: RowSearch, in reading: any ItemReading) throws(KeychainFailure) {
        guard let key = search.rowQuery.searchKey else { return }
        try reading.forEachRow(matching: key, includingSecrets: true) { row throws(KeychainFailure) in
            guard cipher.isIntact(row) else {
                throw KeychainFailure(.decode, "an item with this key was altered", cause: .damaged)
            }
            return .proceed
        }
    }
}

extension RowHeader {
    /// The row's access control, as far as this version can parse it.
    var accessControl: AccessControl {
        AccessControl(accessibility, constraint: constraints.flatMap { ConstraintRecord(encoded: $0) }?.constraint)
    }
}

extension SealedKeychain {
    /// The size limit of items: more than any secret needs, and far below the limits of SQLite and of the encodings.
    package static let largestItemByteCount = 64 << 20

    /// Seals an item under the current class key of its accessibility and the keys of its constraint, and sets `sha1` in `attributes`.
    ///
    /// `lockEpoch` is the session of the write, or the store if the item is sealed before the write. `known` are the digests of the
    /// attributes, if the caller has them. `former` is the row whose constraint, with its keys, the item keeps.
    ///
    /// Throws `.parameter` if the item is too large, and a failure with `needs` if the application password is missing.
    func seal(
        _ attributes: inout ItemAttributes, secret: Data?, reference: PersistentReference, control: AccessControl,
        keepingConstraintOf former: RowHeader? = nil, digests known: RowDigests? = nil, revision: Identifier128 = .random(),
        lockEpoch: any LockEpochReading
    ) throws(KeychainFailure) -> SealedRow {
        guard attributes.byteCount + (secret?.count ?? 0) <= Self.largestItemByteCount else {
            throw KeychainFailure(.parameter, "an item is larger than \(Self.largestItemByteCount >> 20) MiB")
        }
        let accessibility = control.accessibility
        let generation = try keys.currentGeneration(for: accessibility)
        let digests = if let known { known } else { try RowDigests(of: attributes, in: reference.itemClass, using: digests) }
        // `sha1` covers all other attributes, so the same item always has the same value.
        attributes[.sha1] = nil
        attributes[.sha1] = .data(cipher.fingerprint(of: attributes, secret: secret))
        let header = RowHeader(
            reference: reference, accessibility: accessibility, classKeyGeneration: generation, revision: revision,
            isSynchronizable: attributes.flag(.synchronizable) ?? false, isTombstone: attributes.flag(.tombstone) ?? false,
            serviceDigest: digests.service, accountDigest: digests.account, remainingKeyDigest: digests.remainingKey,
            accessGroupDigest: digests.accessGroup, attributeDigests: digests.others
        )
        let cipher = cipher
        let sealed = attributes
        let constraintKeys = constraintKeys
        let record = former?.constraints.flatMap { ConstraintRecord(encoded: $0) }
        let constraint = record.map(SealingConstraint.former) ?? control.constraint.map(SealingConstraint.new)
        let provider = provider(for: accessibility, generation, control.constraint, lockEpoch)
        return try provider.withClassKey(for: accessibility, generation: generation, lockEpoch: lockEpoch) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try cipher.seal(sealed, secret: secret, header: header, constraint: constraint, with: constraintKeys, under: key)
        }
    }

    /// Returns the attributes of the tombstone that a synchronizable item leaves: its primary key and dates.
    func tombstone(of attributes: ItemAttributes, itemClass: ItemClass) -> ItemAttributes {
        var rest = ItemAttributes()
        for attribute in PrimaryKey.attributes(of: itemClass) { rest[attribute] = attributes[attribute] }
        rest[.accessible] = attributes[.accessible]
        rest[.creationDate] = attributes[.creationDate]
        rest[.modificationDate] = .date(modificationDate(after: attributes))
        rest[.tombstone] = .number(1)
        return rest
    }

    /// Returns the current time, but later than the previous modification date, so that the newer version always has the later date.
    func modificationDate(after attributes: ItemAttributes) -> Double {
        max(clock.now(), (attributes.seconds(.modificationDate) ?? -.infinity) + 0.001)
    }

    /// Removes a tombstone or a damaged row with the primary key of `row`.
    ///
    /// Throws `.duplicateItem` if another row has it.
    ///
    /// Returns the reference of a removed tombstone, which an added item takes over.
    @discardableResult
    func removeConflictingRow(
        for row: SealedRow, exceptNumber: Int64? = nil, in writing: any ItemWriting
    ) throws(KeychainFailure) -> PersistentReference? {
        let header = row.header
        let samePrimaryKey = RowQuery(
            serviceDigest: header.serviceDigest, accountDigest: header.accountDigest, remainingKeyDigest: header.remainingKeyDigest
        )
        var found: SealedRow?
        // Without the class, which the digests contain: a row of another class was altered.
        try writing.forEachRow(matching: samePrimaryKey, includingSecrets: true) { other throws(KeychainFailure) in
            guard other.number != exceptNumber else { return .proceed }
            found = other
            return .stop
        }
        guard let other = found, let number = other.number else { return nil }
        switch try openForWriting(other, in: writing) {
        case .damaged:
            try writing.quarantine(number: number, at: clock.now())
            return nil
        case .unsupported(let failure):
            throw failure
        case .destroyed:
            try writing.remove(number: number)
            return nil
        case .opened, .locked, .needsAuthentication:
            guard other.header.isTombstone else {
                throw KeychainFailure(.duplicateItem, "an item with this primary key already exists")
            }
            try writing.remove(number: number)
            return other.header.reference
        }
    }
}
