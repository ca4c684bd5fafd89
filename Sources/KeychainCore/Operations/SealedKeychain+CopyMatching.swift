// SPDX-License-Identifier: Apache-2.0

extension SealedKeychain {
    package func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try forOneCall(request.authentication).matches(of: request)
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
        var guardedCount = 0
        try store.read { reading throws(KeychainFailure) in
            let hiddenCount = try reading.forEachReadableRow(
                matching: search.rowQuery, includingSecrets: request.includesSecrets
            ) {
                row throws(KeychainFailure) in
                guard search.accepts(row.header) else { return .proceed }
                if request.authentication.interaction == .skippingItems, row.header.constraints != nil { return .proceed }
                switch try opensSecretAlone
                    ? openSecret(of: row) : open(row, includingSecret: request.includesSecrets, keeping: kept)
                {
                case .opened(let opened):
                    guard opensSecretAlone || search.accepts(opened.attributes) else { return .proceed }
                    items.append(
                        KeychainItem(
                            reference: row.header.reference, attributes: opened.attributes,
                            accessControl: row.header.accessControl, secret: opened.secret
                        )
                    )
                    return items.count + guardedCount == request.limit ? .stop : .proceed
                case .guarded(let failure):
                    // One question for all of them; what nobody here could answer is no question, and hides no other item.
                    guard let missing = failure.needs else {
                        unreadableCount += 1
                        firstUnreadable = firstUnreadable ?? failure
                        return .proceed
                    }
                    needs.formUnion(missing)
                    guardedCount += 1
                    return items.count + guardedCount == request.limit ? .stop : .proceed
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
            guard hiddenCount > 0 else { return }
            unreadableCount += hiddenCount
            firstUnreadable = firstUnreadable ?? Self.hiddenRow
        }
        guard needs.isEmpty else { throw .needing(needs) }
        guard items.isEmpty else {
            if unreadableCount > 0 { log("\(unreadableCount) unreadable item(s) skipped in a search; nothing was changed") }
            return items
        }
        if let firstUnreadable { throw firstUnreadable }
        throw KeychainFailure(.itemNotFound, "no such item")
    }
}
