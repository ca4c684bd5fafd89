// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

extension DeleteRequest {
    /// The deletion that the dictionary of `SecItemDelete` describes.
    ///
    /// What it says about results is ignored: nothing is delivered.
    init(_ dictionary: ItemDictionary) throws(KeychainFailure) {
        try dictionary.checkChangesStoredItems()
        self.init(query: try ItemQuery(dictionary), leavesTombstone: dictionary.leavesTombstone, authentication: dictionary.authentication)
    }
}
