// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Searches that do not obey access groups, for the person who owns the keychain.
extension LocalKeychain {
    /// Returns where the generic passwords of all programs are.
    ///
    /// Throws the errors of opening the keychain.
    package func survey() throws(KeychainFailure) -> ItemSurvey {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in try opened.keychain.survey() }
    }

    /// Returns where the generic passwords with this account and one of these services, or nil for any, are; see `SealedKeychain.places`.
    ///
    /// Throws the errors of opening the keychain.
    package func places(ofAccount account: String, services: [String]?) throws(KeychainFailure) -> [ItemPlace] {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            try opened.keychain.places(ofAccount: account, services: services)
        }
    }
}
