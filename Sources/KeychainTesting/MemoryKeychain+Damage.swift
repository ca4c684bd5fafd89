// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Keybag
internal import KeychainCore
internal import KeychainEngine

extension MemoryKeychain {
    /// Changes a bit in everything that is sealed; what rows are found by stays as it is.
    ///
    /// Throws `.itemNotFound` when no item has that account.
    func damageItems(account: String?) throws(KeychainFailure) {
        try access.perform(creating: true) { opened throws(KeychainFailure) in
            var queries = [RowQuery(isTombstone: false)]
            if let account {
                queries.removeAll()
                for itemClass in [ItemClass.genericPassword, .internetPassword] {
                    let digest = try opened.keybag.cipher.digest(of: .string(account), for: .account, in: itemClass)
                    queries.append(RowQuery(itemClass: itemClass, accountDigest: digest, isTombstone: false))
                }
            }
            try opened.keychain.write { writing throws(KeychainFailure) in
                var rows: [SealedRow] = []
                for query in queries {
                    try writing.forEachRow(matching: query, includingSecrets: true) { row throws(KeychainFailure) in
                        rows.append(row)
                        return .proceed
                    }
                }
                guard !rows.isEmpty else { throw KeychainFailure(.itemNotFound, "there is no such item to damage") }
                for var row in rows {
                    guard let number = row.number else { continue }
                    row.wrappedItemKey.damage()
                    row.sealedAttributes.damage()
                    row.sealedSecret.damage()
                    try writing.replace(number: number, with: row)
                }
            }
        }
    }
}

extension [UInt8] {
    fileprivate mutating func damage() {
        if let index = indices.first { self[index] ^= 1 }
    }
}
#endif
