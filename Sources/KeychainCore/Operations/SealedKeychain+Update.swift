// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

extension SealedKeychain {
    package func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try scopedToCall(request.authentication).updateItems(request)
    }

    private func updateItems(_ request: UpdateRequest) throws(KeychainFailure) {
        let query = request.query
        let groups = try entitlements.groups(forSearchNaming: query.attributes.text(.accessGroup), access: .write)
        if let newGroup = request.changes.text(.accessGroup) { try entitlements.requireAccess(.write, to: newGroup) }
        try query.itemClass.requirePassword()
        try entitlements.requireNoToken(request.changes)
        if let control = request.accessControl { try entitlements.requireStorable(control, isSynchronizable: false) }
        let search = try RowSearch(query, groups: groups, using: digests)
        let notFoundFailure = KeychainFailure(.itemNotFound, "no such item to update")
        let isShortWrite = search.isSelective && isShortWrite(secret: request.secret)
        let prepared =
            search.isSelective ? try searchBeforeWriting(request, search, isShortWrite: isShortWrite, orThrow: notFoundFailure) : nil

        try write(sharesFlush: isShortWrite) { writing throws(KeychainFailure) in
            var found: [(SealedRow, RowOpening)] = []
            var isExcluded = false
            let hasExcludedRow = try writing.forEachRow(matching: search.rowQuery, includingSecrets: true) { row throws(KeychainFailure) in
                guard search.accepts(row.header) else {
                    isExcluded = true
                    return .proceed
                }
                let opening = if let ready = prepared?.opening(of: row) { ready } else { try openForWriting(row, in: writing) }
                switch opening {
                case .opened(let opened): guard search.accepts(opened.attributes) else { return .proceed }
                // It is unknown whether the row matches, so it is not overwritten.
                case .damaged(let failure): if search.needsOpening { throw failure }
                case .needsAuthentication(let failure):
                    if search.needsOpening || !canReplaceWithoutReading(row, request, needing: failure.needs) {
                        throw request.addingNeedsOfNewClass(failure)
                    }
                case .destroyed:
                    isExcluded = true
                    return .proceed
                case .unsupported, .locked: break
                }
                found.append((row, opening))
                return .proceed
            }
            guard !found.isEmpty else {
                if isExcluded || hasExcludedRow { try requireIntactExcludedRows(of: search, in: writing) }
                throw notFoundFailure
            }
            for (row, opening) in found {
                switch opening {
                case .opened(let opened):
                    let ready = prepared?.replacement(of: row)
                    let new = if let ready { ready } else { try replacement(of: row, opened, as: request, in: writing) }
                    try put(new, inPlaceOf: row, opened, as: request, in: writing)
                case .damaged(let failure): try replaceDamaged(row, as: request, orThrow: failure, in: writing)
                case .needsAuthentication(let failure): try replaceWithoutReading(row, as: request, orThrow: failure, in: writing)
                case .unsupported(let failure), .locked(let failure): throw failure
                case .destroyed: throw notFoundFailure
                }
            }
        }
    }

    /// Searches for the rows, and prepares the replacement if there is one row and the write is short.
    ///
    /// A miss throws `notFoundFailure` without waiting for the write lock.
    private func searchBeforeWriting(
        _ request: UpdateRequest, _ search: RowSearch, isShortWrite: Bool, orThrow notFoundFailure: KeychainFailure
    ) throws(KeychainFailure) -> PreparedReplacement? {
        try store.read { reading throws(KeychainFailure) in
            var rows: [SealedRow] = []
            var isExcluded = false
            let hasExcludedRow = try reading.forEachRow(matching: search.rowQuery, includingSecrets: isShortWrite) {
                row throws(KeychainFailure) in
                if search.accepts(row.header) { rows.append(row) } else { isExcluded = true }
                return .proceed
            }
            guard let first = rows.first else {
                guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
                if isExcluded || hasExcludedRow { try requireIntactExcludedRows(of: search, in: reading) }
                throw notFoundFailure
            }
            return isShortWrite && rows.count == 1 ? prepare(request, of: first, search, in: reading) : nil
        }
    }

    /// Opens the row and seals its replacement before the write lock is acquired, so that several threads can do so concurrently.
    ///
    /// Returns nil on any failure; the write then reports the failure for the row's state at that time. Also nil for rows with access
    /// control, which may require authentication.
    private func prepare(
        _ request: UpdateRequest, of row: SealedRow, _ search: RowSearch, in reading: any ItemReading
    ) -> PreparedReplacement? {
        guard row.header.constraints == nil, request.accessControl?.constraint == nil else { return nil }
        do throws(KeychainFailure) {
            guard case .opened(let opened) = try openForWriting(row, in: reading), search.accepts(opened.attributes) else { return nil }
            return PreparedReplacement(old: row, opened: opened, new: try replacement(of: row, opened, as: request, in: reading))
        } catch {
            return nil
        }
    }

    private func replacement(
        of row: SealedRow, _ old: OpenedRow, as request: UpdateRequest, in reading: any ItemReading
    ) throws(KeychainFailure) -> SealedRow {
        let control = request.protection(inPlaceOf: row.header.accessControl)
        var attributes = old.attributes.updated(with: request.changes)
        attributes[.accessible] = .string(control.accessibility.rawValue)
        attributes[.modificationDate] = .date(modificationDate(after: old.attributes))
        try entitlements.requireStorable(control, isSynchronizable: attributes.flag(.synchronizable) ?? false)
        // Neither the class nor the date has a digest. A new secret alone, as most updates store, takes 6 % fewer instructions this way.
        let digests = request.changes.isEmpty ? RowDigests(storedIn: row.header) : nil
        let former = request.accessControl == nil && keepsKeys(control.constraint) ? row.header : nil
        return try seal(
            &attributes, secret: request.secret ?? old.secret, reference: row.header.reference, control: control,
            keepingConstraintOf: former, digests: digests, lockEpoch: reading)
    }

    /// Whether a row that replaces one with this constraint keeps its keys.
    ///
    /// A finger that was enrolled since must not open an item because its value was replaced. Where this call knows of no fingers, those that open
    /// the item have to open it afterwards too. Otherwise the item is sealed to the present keys, for example if it came from another machine.
    private func keepsKeys(_ constraint: AccessControl.Constraint?) -> Bool {
        let kinds = constraint?.biometryKinds ?? []
        return kinds.contains(.currentSet) || !kinds.isEmpty && constraintKeys.enrollment == nil
    }

    private func put(
        _ new: SealedRow, inPlaceOf row: SealedRow, _ old: OpenedRow, as request: UpdateRequest, in writing: any ItemWriting
    ) throws(KeychainFailure) {
        guard let number = row.number else { return }
        if !hasSamePrimaryKey(new.header, row.header) {
            try removeConflictingRow(for: new, exceptNumber: number, in: writing)
        }
        try writing.replace(number: number, with: new)
        try leaveTombstone(of: old.attributes, movedFrom: row.header, to: new.header, as: request, in: writing)
    }

    /// Inserts a tombstone at the old primary key of a synchronizable item that was moved or became local.
    private func leaveTombstone(
        of attributes: ItemAttributes, movedFrom old: RowHeader, to new: RowHeader, as request: UpdateRequest,
        in writing: any ItemWriting
    ) throws(KeychainFailure) {
        guard !old.isTombstone, !hasSamePrimaryKey(old, new), request.leavesTombstone ?? old.isSynchronizable else { return }
        var rest = tombstone(of: attributes, itemClass: old.reference.itemClass)
        let reference = PersistentReference(itemClass: old.reference.itemClass, id: .random())
        try writing.insert(
            try seal(&rest, secret: nil, reference: reference, control: AccessControl(old.accessibility), lockEpoch: writing))
    }

    /// Replaces a damaged item if the request contains the whole primary key and a secret; throws `failure` otherwise.
    private func replaceDamaged(
        _ row: SealedRow, as request: UpdateRequest, orThrow failure: KeychainFailure, in writing: any ItemWriting
    ) throws(KeychainFailure) {
        guard let secret = request.secret, namesWholePrimaryKey(request.query), let number = row.number else { throw failure }
        // An attacker who can write the file could have removed the row's access control. So if a passcode is set, the request must
        // specify the access control.
        let storedControl = row.header.accessControl
        let isClear = row.header.constraints == nil && cipher.presencePublicKey == nil
        guard request.accessControl != nil || isClear else { throw failure }
        // The replacement must be found by the query that found the row.
        let named = request.query.attributes.text(.accessible).flatMap { ItemAccessibility(rawValue: $0) }
        let strictControl = AccessControl(
            named ?? Self.protection(inPlaceOf: storedControl.accessibility), constraint: storedControl.constraint)
        let control = request.protection(inPlaceOf: strictControl)
        let new = try sealedFromRequest(row, as: request, secret: secret, control: control, in: writing)
        try writing.quarantine(number: number, at: clock.now())
        try removeConflictingRow(for: new, in: writing)
        try writing.insert(new)
        log("a damaged item was replaced by an update; the damaged row is in quarantine")
    }

    /// Seals the item that the request describes, with the row's primary key and reference.
    private func sealedFromRequest(
        _ row: SealedRow, as request: UpdateRequest, secret: Data, control: AccessControl, in writing: any ItemWriting
    ) throws(KeychainFailure) -> SealedRow {
        let query = request.query
        var given = ItemAttributes()
        for attribute in PrimaryKey.attributes(of: query.itemClass) { given[attribute] = query.attributes[attribute] }
        // The row has these values of the query, because the search matched their digests.
        for digest in row.header.attributeDigests { given[digest.attribute] = query.attributes[digest.attribute] }
        given[.synchronizable] = .number(row.header.isSynchronizable ? 1 : 0)
        let group = try accessGroupOfUnreadableRow(row, query)
        var attributes = Self.completed(
            given, itemClass: query.itemClass, group: group, control: control
        ).updated(with: request.changes)
        let now = clock.now()
        attributes[.creationDate] = attributes[.creationDate] ?? .date(now)
        attributes[.modificationDate] = .date(now)
        try entitlements.requireStorable(control, isSynchronizable: attributes.flag(.synchronizable) ?? false)
        return try seal(&attributes, secret: secret, reference: row.header.reference, control: control, lockEpoch: writing)
    }

    /// Whether a row with access control can be replaced without reading it: the request may not prompt, and specifies every attribute of
    /// the item.
    ///
    /// Otherwise a caller that may not prompt would have to delete the item and add it again. Returns false if an application password is
    /// missing or wrong, because the new item would have another password.
    private func canReplaceWithoutReading(_ row: SealedRow, _ request: UpdateRequest, needing needs: AuthenticationNeeds?) -> Bool {
        guard let needs, needs.applicationPassword == nil else { return false }
        guard !request.authentication.mayAsk, request.secret != nil, namesWholePrimaryKey(request.query) else {
            return false
        }
        return row.header.attributeDigests.allSatisfy { digest in
            request.query.attributes[digest.attribute] != nil || request.changes[digest.attribute] != nil
        }
    }

    /// Replaces the item without opening it.
    ///
    /// The reference and the access control do not change. The creation date is new, because the old one is sealed.
    private func replaceWithoutReading(
        _ row: SealedRow, as request: UpdateRequest, orThrow failure: KeychainFailure, in writing: any ItemWriting
    ) throws(KeychainFailure) {
        guard let secret = request.secret, let number = row.number else { throw failure }
        let control = request.protection(inPlaceOf: row.header.accessControl)
        let new = try sealedFromRequest(row, as: request, secret: secret, control: control, in: writing)
        if !hasSamePrimaryKey(new.header, row.header) { try removeConflictingRow(for: new, exceptNumber: number, in: writing) }
        try writing.replace(number: number, with: new)
    }

    /// The protection class of a damaged item's replacement if neither the changes nor the query names one.
    ///
    /// An attacker may have altered the class. It is used only if it is at least as strict as a new item's.
    private static func protection(inPlaceOf stored: ItemAccessibility) -> ItemAccessibility {
        switch stored {
        case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: stored
        case .afterFirstUnlock, .always: .whenUnlocked
        case .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly: .whenUnlockedThisDeviceOnly
        }
    }

    /// Returns the access group.
    ///
    /// If the query does not name it, the row's digest identifies it among the program's groups.
    private func accessGroupOfUnreadableRow(_ row: SealedRow, _ query: ItemQuery) throws(KeychainFailure) -> String {
        if let named = query.attributes.text(.accessGroup) { return named }
        for group in entitlements.accessGroups where entitlements.canWrite(group) {
            let digest = try digests.digest(of: .string(group), for: .accessGroup, in: query.itemClass)
            if digest == row.header.accessGroupDigest { return group }
        }
        throw KeychainFailure(.decode, "an item's access group cannot be determined")
    }

    /// Whether the query names the whole primary key.
    ///
    /// Parts that are the same for nearly every item (`agrp`, `sync`, hints, user) may be missing.
    private func namesWholePrimaryKey(_ query: ItemQuery) -> Bool {
        PrimaryKey.attributes(of: query.itemClass).allSatisfy { attribute in
            switch attribute {
            case .accessGroup, .synchronizable, .syncViewHint, .tokenID, .multiUser: true
            default: query.attributes[attribute] != nil
            }
        }
    }

    private func hasSamePrimaryKey(_ left: RowHeader, _ right: RowHeader) -> Bool {
        left.serviceDigest == right.serviceDigest && left.accountDigest == right.accountDigest
            && left.remainingKeyDigest == right.remainingKeyDigest
    }
}

/// The replacement of a row, sealed before the write, with the row that it replaces.
///
/// It is used only if the row is unchanged at the time of the write.
struct PreparedReplacement {
    let old: SealedRow
    let opened: OpenedRow
    let new: SealedRow

    func opening(of row: SealedRow) -> RowOpening? { replaces(row) ? .opened(opened) : nil }

    func replacement(of row: SealedRow) -> SealedRow? { replaces(row) ? new : nil }

    /// Compares the whole row, because an attacker who can write the file could change a row without changing its revision.
    private func replaces(_ row: SealedRow) -> Bool { row == old }
}
