// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

extension SealedKeychain {
    package func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try forOneCall.updateItems(request)
    }

    private func updateItems(_ request: UpdateRequest) throws(KeychainFailure) {
        let query = request.query
        let groups = try entitlements.groups(forSearchNaming: query.attributes.text(.accessGroup), access: .write)
        if let newGroup = request.changes.text(.accessGroup) { try entitlements.require(newGroup, access: .write) }
        try query.itemClass.requirePassword()
        try entitlements.requireNoToken(request.changes)
        if let control = request.accessControl { try entitlements.requireStorable(control, isSynchronizable: false) }
        let search = try RowSearch(query, groups: groups, using: digests)

        try write { writing throws(KeychainFailure) in
            var found: [(SealedRow, RowOpening)] = []
            try writing.forEachRow(matching: search.rowQuery, includingSecrets: true) { row throws(KeychainFailure) in
                guard search.accepts(row.header) else { return .proceed }
                let opening = try openForWriting(row)
                switch opening {
                case .opened(let opened): guard search.accepts(opened.attributes) else { return .proceed }
                // Whether it is meant cannot be said, so it is not written over.
                case .damaged(let failure): if search.needsOpening { throw failure }
                case .unsupported, .locked: break
                }
                found.append((row, opening))
                return .proceed
            }
            guard !found.isEmpty else { throw KeychainFailure(.itemNotFound, "no such item to update") }
            for (row, opening) in found {
                switch opening {
                case .opened(let opened): try rewrite(row, opened, as: request, in: writing)
                case .damaged(let failure): try replaceDamaged(row, as: request, orThrow: failure, in: writing)
                case .unsupported(let failure), .locked(let failure): throw failure
                }
            }
        }
    }

    private func rewrite(
        _ row: SealedRow, _ old: OpenedRow, as request: UpdateRequest, in writing: any ItemWriting
    ) throws(KeychainFailure) {
        let accessibility = request.accessControl?.accessibility ?? row.header.accessibility
        var attributes = old.attributes.updated(with: request.changes)
        attributes[.accessible] = .string(accessibility.rawValue)
        attributes[.modificationDate] = .date(modificationDate(after: old.attributes))
        try entitlements.requireStorable(AccessControl(accessibility), isSynchronizable: attributes.flag(.synchronizable) ?? false)
        let new = try seal(
            &attributes, secret: request.secret ?? old.secret, reference: row.header.reference, accessibility: accessibility
        )
        guard let number = row.number else { return }
        if !hasSamePrimaryKey(new.header, row.header) {
            try clearWay(for: new, exceptNumber: number, in: writing)
        }
        try writing.replace(number: number, with: new)
        try leaveTombstone(of: old.attributes, movedFrom: row.header, to: new.header, as: request, in: writing)
    }

    /// A synchronizable item that moved away, or became local, leaves a mark where it was.
    private func leaveTombstone(
        of attributes: ItemAttributes, movedFrom old: RowHeader, to new: RowHeader, as request: UpdateRequest,
        in writing: any ItemWriting
    ) throws(KeychainFailure) {
        guard !old.isTombstone, !hasSamePrimaryKey(old, new), request.leavesTombstone ?? old.isSynchronizable else { return }
        var rest = tombstone(of: attributes, itemClass: old.reference.itemClass)
        let reference = PersistentReference(itemClass: old.reference.itemClass, id: .random())
        try writing.insert(try seal(&rest, secret: nil, reference: reference, accessibility: old.accessibility))
    }

    /// A damaged item can be written anew when the call says everything: the whole primary key and a secret.
    private func replaceDamaged(
        _ row: SealedRow, as request: UpdateRequest, orThrow failure: KeychainFailure, in writing: any ItemWriting
    ) throws(KeychainFailure) {
        guard let secret = request.secret, namesWholePrimaryKey(request.query), let number = row.number else { throw failure }
        let query = request.query
        var given = ItemAttributes()
        for attribute in PrimaryKey.attributes(of: query.itemClass) { given[attribute] = query.attributes[attribute] }
        given[.synchronizable] = .number(row.header.isSynchronizable ? 1 : 0)
        let accessibility = request.accessControl?.accessibility ?? Self.protection(inPlaceOf: row.header.accessibility)
        let group = try groupOfDamaged(row, query)
        var attributes = Self.completed(
            given, itemClass: query.itemClass, group: group, control: AccessControl(accessibility)
        ).updated(with: request.changes)
        let now = clock.now()
        attributes[.creationDate] = attributes[.creationDate] ?? .date(now)
        attributes[.modificationDate] = .date(now)
        try entitlements.requireStorable(AccessControl(accessibility), isSynchronizable: attributes.flag(.synchronizable) ?? false)
        let new = try seal(&attributes, secret: secret, reference: row.header.reference, accessibility: accessibility)
        try writing.quarantine(number: number, at: now)
        try clearWay(for: new, in: writing)
        try writing.insert(new)
        log("a damaged item was replaced by an update; the damaged row is in quarantine")
    }

    /// The protection of what replaces a damaged item, when the call names none.
    ///
    /// The damaged row may say what somebody wrote into it: it is believed where it asks for more protection than a new item would
    /// get, and never where it asks for less.
    private static func protection(inPlaceOf claimed: Accessibility) -> Accessibility {
        switch claimed {
        case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: claimed
        case .afterFirstUnlock, .always: .whenUnlocked
        case .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly: .whenUnlockedThisDeviceOnly
        }
    }

    /// The access group need not be named: its digest tells which of the program's groups it is.
    private func groupOfDamaged(_ row: SealedRow, _ query: ItemQuery) throws(KeychainFailure) -> String {
        if let named = query.attributes.text(.accessGroup) { return named }
        for group in entitlements.accessGroups where entitlements.canWrite(group) {
            let digest = try digests.digest(of: .string(group), for: .accessGroup, in: query.itemClass)
            if digest == row.header.accessGroupDigest { return group }
        }
        throw KeychainFailure(.decode, "an item is damaged, its access group included")
    }

    /// Parts that are the same for nearly every item (`agrp`, `sync`, hints, user) may be left out.
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
