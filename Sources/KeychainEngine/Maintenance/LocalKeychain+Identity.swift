// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore

extension LocalKeychain {
    /// Returns the identifier of the store.
    ///
    /// Throws `.itemNotFound` if there is none, and the errors of opening it.
    package func storeID() throws(KeychainFailure) -> StoreID {
        try perform(creating: false) { opened in opened.keybag.storeID }
    }

    /// Closes the store; the next call opens it again.
    package func close() { closeCurrent() }
}
