// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import FoundationEssentials
package import KeychainCore

/// Seals and opens the rows of one store.
///
/// Holds the two keys that need no class key: for digests and for row tags.
package final class RowCipher: ItemCipher, Sendable {
    package let storeID: StoreID
    let indexKey: HMACKey
    let rowTagKey: HMACKey
    package let presencePublicKey: [UInt8]?
    /// What deriving from an application password costs in new items.
    let applicationPasswordCost: PasscodeCost

    init(
        storeID: StoreID, indexKey: borrowing SecretBytes, rowTagKey: borrowing SecretBytes, presencePublicKey: [UInt8]?,
        applicationPasswordCost: PasscodeCost
    ) throws(KeychainFailure) {
        self.storeID = storeID
        self.presencePublicKey = presencePublicKey
        self.applicationPasswordCost = applicationPasswordCost
        self.indexKey = try HMACKey(indexKey)
        self.rowTagKey = try HMACKey(rowTagKey)
    }

    package func fingerprint(of attributes: ItemAttributes, secret: Data?) -> Data {
        var hash = Insecure.SHA1()
        hash.update(data: attributes.encoded)
        hash.update(data: [secret == nil ? 0 : 1] as [UInt8])
        if let secret { hash.update(data: secret) }
        return Data(hash.finalize())
    }
}
