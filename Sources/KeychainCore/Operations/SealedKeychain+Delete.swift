// SPDX-License-Identifier: Apache-2.0

extension SealedKeychain {
    package func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try forOneCall(request.authentication).deleteItems(request)
    }

    private func deleteItems(_ request: DeleteRequest) throws(KeychainFailure) {
        let query = request.query
        let groups = try entitlements.groups(forSearchNaming: query.attributes.text(.accessGroup), access: .write)
        try query.itemClass.requirePassword()
        let search = try RowSearch(query, groups: groups, using: digests)

        try write(sharesFlush: search.findsFewRows && isShort(secret: nil)) { writing throws(KeychainFailure) in
            var found: [(SealedRow, RowOpening)] = []
            try writing.forEachRow(matching: search.rowQuery, includingSecrets: true) { row throws(KeychainFailure) in
                guard search.accepts(row.header) else { return .proceed }
                var kept = row
                let opening = try openForWriting(row)
                switch opening {
                case .opened(let opened): guard search.accepts(opened.attributes) else { return .proceed }
                case .unsupported(let failure): throw failure
                case .damaged(let failure), .locked(let failure), .guarded(let failure): if search.needsOpening { throw failure }
                }
                kept.sealedSecret = []
                found.append((kept, opening))
                return .proceed
            }
            guard !found.isEmpty else { throw KeychainFailure(.itemNotFound, "no such item to delete") }
            for (row, opening) in found { try delete(row, opening, as: request, in: writing) }
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
            let mark = try seal(&rest, secret: nil, reference: header.reference, control: header.accessControl)
            try writing.replace(number: number, with: mark)
        case .damaged:
            try writing.quarantine(number: number, at: clock.now())
            log("a damaged item was deleted; the damaged row is in quarantine")
        case .locked, .guarded, .unsupported:
            // Deleting needs no key. What a tombstone would say is sealed, so a locked item leaves none.
            try writing.remove(number: number)
        }
    }
}
