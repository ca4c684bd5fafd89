// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

/// The rules of Keychain Services over a store, a cipher, and a key provider.
package struct SealedKeychain: Keychain {
    package let store: any ItemStore
    package private(set) var keys: any KeyProvider
    /// The keys for satisfying access control in this call.
    private(set) var constraintKeys = ConstraintKeys()
    let cipher: any ItemCipher
    let clock: any WallClock
    let digests: DigestCache
    package private(set) var entitlements: Entitlements
    /// Logs a warning about a skipped or quarantined item.
    ///
    /// The text never contains a secret or the value of an attribute.
    let log: @Sendable (String) -> Void

    package init(
        store: any ItemStore, keys: any KeyProvider, cipher: any ItemCipher, clock: any WallClock, entitlements: Entitlements,
        log: @escaping @Sendable (String) -> Void
    ) {
        self.store = store
        self.keys = keys
        self.cipher = cipher
        self.clock = clock
        self.digests = DigestCache(cipher: cipher)
        self.entitlements = entitlements
        self.log = log
    }

    /// Returns the same keychain with another provider of its keys.
    package func with(keys: any KeyProvider) -> SealedKeychain {
        var keychain = self
        keychain.keys = keys
        return keychain
    }

    /// The same keychain for one call: keys are fetched once and wiped at the end of the call.
    var scopedToCall: SealedKeychain { with(keys: keys.scopedToCall(for: .use)) }

    /// The same keychain for one call of an agent, which does not count as use: it does not postpone automatic locking.
    package var scopedToAgent: SealedKeychain { with(keys: keys.scopedToCall(for: .inspection)) }

    /// The same keychain for one call that may satisfy access control.
    func scopedToCall(_ authentication: Authentication) -> SealedKeychain {
        var keychain = scopedToCall
        if let context = authentication.context {
            keychain.constraintKeys = context.keys(of: cipher.storeID, presencePublicKey: cipher.presencePublicKey)
        }
        return keychain
    }

    /// Returns the same keychain for a program with other entitlements.
    package func with(entitlements: Entitlements) -> SealedKeychain {
        var keychain = self
        keychain.entitlements = entitlements
        return keychain
    }

    /// Returns the same keychain with keys for access control.
    package func with(constraintKeys: ConstraintKeys) -> SealedKeychain {
        var keychain = self
        keychain.constraintKeys = constraintKeys
        return keychain
    }

    /// Returns whether the keys come from the store's current keybag.
    ///
    /// With an older keybag, rows may wrongly seem unreadable.
    func isKeybagCurrent(_ reading: any ItemReading) throws(KeychainFailure) -> Bool {
        try reading.keybag().generation == keys.keybagGeneration
    }

    package func write<Result>(
        sharesFlush: Bool = false, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        switch try store.write(ifKeybagGeneration: keys.keybagGeneration, sharesFlush: sharesFlush, body) {
        case .written(let result): return result
        case .keybagChanged:
            throw Self.keybagChanged
        }
    }

    /// Whether a write of one item is short enough for a group commit: it has no large value and needs no key derivation from a password.
    func isShortWrite(secret: Data?) -> Bool {
        constraintKeys.presence == nil && constraintKeys.applicationPassword == nil
            && (secret?.count ?? 0) <= Self.largestShortSecretByteCount
    }

    private static let largestShortSecretByteCount = 64 << 10

    /// The failure for an item in a damaged page, of which nothing can be read.
    static var rowInDamagedPage: KeychainFailure {
        KeychainFailure(
            .decode, "an item is in a damaged part of the keychain's file", subject: .store, isDamage: true,
            remedy: .repair)
    }

    /// The failure of a listing that has to be complete.
    private static var itemsMayBeMissing: KeychainFailure {
        KeychainFailure(
            .decode, "a part of the keychain is damaged, so items may be missing", subject: .store, cause: .damaged, isDamage: true,
            remedy: .saveReadable)
    }

    /// The failure of the deletion of several items, which is then rolled back.
    private static var itemsMayRemain: KeychainFailure {
        KeychainFailure(
            .notAvailable, "a part of the keychain is damaged, so items might remain after a deletion", subject: .store, cause: .damaged,
            isDamage: true, remedy: .saveReadable)
    }

    package static var keybagChanged: KeychainFailure {
        KeychainFailure(.notAvailable, "the store's keybag changed since it was opened", subject: .keybag, requiresReopening: true)
    }
}

extension SealedKeychain {
    package func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        try scopedToCall(request.authentication).addItem(request)
    }

    private func addItem(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        let (group, control) = try entitlements.validateAdd(request)
        var attributes = Self.completed(request.attributes, itemClass: request.itemClass, group: group, control: control)
        let now = clock.now()
        attributes[.creationDate] = .date(now)
        attributes[.modificationDate] = .date(now)

        // Sealed before the check for duplicates, so that a locked class fails as locked and not as duplicate.
        let fresh = PersistentReference(itemClass: request.itemClass, id: .random())
        let row = try seal(&attributes, secret: request.secret, reference: fresh, control: control, lockEpoch: store)
        let reference = try write(sharesFlush: isShortWrite(secret: request.secret)) { writing throws(KeychainFailure) in
            guard let inherited = try removeConflictingRow(for: row, in: writing) else {
                try writing.insert(row)
                return fresh
            }
            try writing.insert(
                try seal(&attributes, secret: request.secret, reference: inherited, control: control, lockEpoch: writing)
            )
            return inherited
        }
        return KeychainItem(reference: reference, attributes: attributes, accessControl: control, secret: request.secret)
    }

    /// Returns the attributes with the defaults that every item has.
    static func completed(
        _ given: ItemAttributes, itemClass: ItemClass, group: String, control: AccessControl
    ) -> ItemAttributes {
        var attributes = given
        for attribute in PrimaryKey.attributes(of: itemClass) where attributes[attribute] == nil {
            // Absent hints and token identifiers stay absent.
            if attribute == .syncViewHint || attribute == .tokenID { continue }
            attributes[attribute] = PrimaryKey.defaultValue(of: attribute)
        }
        attributes[.accessGroup] = .string(group)
        attributes[.accessible] = .string(control.accessibility.rawValue)
        attributes[.tombstone] = .number(0)
        return attributes
    }
}

extension SealedKeychain {
    package func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try scopedToCall(request.authentication).matches(of: request)
    }

    private func matches(of request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        let query = request.query
        let groups = try entitlements.groups(forSearchNaming: query.attributes.text(.accessGroup), access: .read)
        try query.itemClass.requirePassword()
        guard request.limit != 0 else { throw KeychainFailure(.itemNotFound, "a limit of 0 finds nothing") }
        let search = try RowSearch(query, groups: groups, using: digests)

        let opensSecretAlone = request.includesSecrets && request.attributes == .none && !search.needsOpening
        let kept = search.needsOpening ? .all : request.attributes

        var items: [KeychainItem] = []
        var unreadableCount = 0
        var firstUnreadable: KeychainFailure?
        var needs = AuthenticationNeeds()
        var unauthenticatedCount = 0
        var hasExcludedRow = false
        try store.read { reading throws(KeychainFailure) in
            let skipped = try reading.forEachReadableRow(
                matching: search.rowQuery, includingSecrets: request.includesSecrets
            ) {
                row throws(KeychainFailure) in
                guard search.accepts(row.header),
                    request.authentication.interaction != .skippingItems || row.header.constraints == nil
                else {
                    hasExcludedRow = true
                    return .proceed
                }
                switch try opensSecretAlone
                    ? openSecret(of: row, in: reading)
                    : open(row, includingSecret: request.includesSecrets, keeping: kept, in: reading)
                {
                case .opened(let opened):
                    guard opensSecretAlone || search.accepts(opened.attributes) else { return .proceed }
                    items.append(
                        KeychainItem(
                            reference: row.header.reference, attributes: opened.attributes,
                            accessControl: row.header.accessControl, secret: opened.secret
                        )
                    )
                    return items.count + unauthenticatedCount == request.limit ? .stop : .proceed
                case .destroyed:
                    hasExcludedRow = true
                    return .proceed
                case .needsAuthentication(let failure):
                    // One prompt for all such items. An item that can never be opened on this platform must not hide the others.
                    guard let missing = failure.needs else {
                        unreadableCount += 1
                        firstUnreadable = firstUnreadable ?? failure
                        return .proceed
                    }
                    needs.formUnion(missing)
                    unauthenticatedCount += 1
                    return items.count + unauthenticatedCount == request.limit ? .stop : .proceed
                case .unsupported(let failure):
                    // The newest keybag may have the key that is missing here.
                    guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
                    unreadableCount += 1
                    firstUnreadable = firstUnreadable ?? failure
                    return .proceed
                case .damaged(let failure):
                    unreadableCount += 1
                    firstUnreadable = firstUnreadable ?? failure
                    return .proceed
                case .locked(let failure):
                    throw failure
                }
            }
            if skipped.damagedPageRowCount > 0 {
                unreadableCount += skipped.damagedPageRowCount
                firstUnreadable = firstUnreadable ?? Self.rowInDamagedPage
            } else if hasExcludedRow || skipped.hasExcludedRow, items.isEmpty, unauthenticatedCount == 0 {
                try requireIntactExcludedRows(of: search, in: reading)
            }
            if !search.isSelective, items.count + unauthenticatedCount != request.limit, try reading.mayLackRows() {
                firstUnreadable = firstUnreadable ?? Self.itemsMayBeMissing
                log("a part of the keychain is damaged, so items may be missing from the result of a search")
            }
        }
        if request.failsIfUnreadable, let firstUnreadable { throw firstUnreadable }
        guard needs.isEmpty else { throw .authenticationRequired(needs) }
        guard items.isEmpty else {
            if unreadableCount > 0 { log("\(unreadableCount) unreadable item(s) skipped in a search; nothing was changed") }
            return items
        }
        if let firstUnreadable { throw firstUnreadable }
        throw KeychainFailure(.itemNotFound, "no such item")
    }
}

extension SealedKeychain {
    package func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try scopedToCall(request.authentication).deleteItems(request)
    }

    private func deleteItems(_ request: DeleteRequest) throws(KeychainFailure) {
        let query = request.query
        let groups = try entitlements.groups(forSearchNaming: query.attributes.text(.accessGroup), access: .write)
        try query.itemClass.requirePassword()
        let search = try RowSearch(query, groups: groups, using: digests)

        try write(sharesFlush: search.isSelective && isShortWrite(secret: nil)) { writing throws(KeychainFailure) in
            var found: [(SealedRow, RowOpening)] = []
            var isExcluded = false
            let hasExcludedRow = try writing.forEachRow(matching: search.rowQuery, includingSecrets: true) { row throws(KeychainFailure) in
                guard search.accepts(row.header) else {
                    isExcluded = true
                    return .proceed
                }
                var kept = row
                let opening = try openForWriting(row, in: writing)
                switch opening {
                case .opened(let opened): guard search.accepts(opened.attributes) else { return .proceed }
                case .unsupported(let failure): throw failure
                case .destroyed: break
                case .damaged(let failure), .locked(let failure), .needsAuthentication(let failure):
                    if search.needsOpening { throw failure }
                }
                kept.sealedSecret = []
                found.append((kept, opening))
                return .proceed
            }
            guard !found.isEmpty else {
                if isExcluded || hasExcludedRow { try requireIntactExcludedRows(of: search, in: writing) }
                throw KeychainFailure(.itemNotFound, "no such item to delete")
            }
            for (row, opening) in found { try delete(row, opening, as: request, in: writing) }
            // The deletion of several items must not leave one that an altered column hides.
            if !search.isSelective, try writing.mayLackRows() { throw Self.itemsMayRemain }
        }
    }

    private func delete(
        _ row: SealedRow, _ opening: RowOpening, as request: DeleteRequest, in writing: any ItemWriting
    ) throws(KeychainFailure) {
        guard let number = row.number else { return }
        let header = row.header
        switch opening {
        case .opened(let opened):
            guard !header.isTombstone, request.leavesTombstone ?? header.isSynchronizable else {
                return try writing.remove(number: number)
            }
            var rest = tombstone(of: opened.attributes, itemClass: header.reference.itemClass)
            let tombstone = try seal(&rest, secret: nil, reference: header.reference, control: header.accessControl, lockEpoch: writing)
            try writing.replace(number: number, with: tombstone)
        case .damaged:
            try writing.quarantine(number: number, at: clock.now())
            log("a damaged item was deleted; the damaged row is in quarantine")
        case .locked, .needsAuthentication, .unsupported, .destroyed:
            // Deleting needs no key. The attributes of a tombstone are sealed, so a locked item leaves none.
            try writing.remove(number: number)
        }
    }
}
