// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Searches that do not obey access groups, for the person who owns the keychain.
extension LocalKeychain: SurveyableKeychain {
    package func survey() throws(KeychainFailure) -> ItemSurvey {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in try opened.keychain.survey() }
    }

    package func places(ofAccount account: String, services: [String]?) throws(KeychainFailure) -> [ItemPlace] {
        try places(ofAccount: account, services: services) { _ in true }
    }

    /// Leaves out the access groups that are not included.
    package func places(
        ofAccount account: String, services: [String]?, where isIncluded: (_ accessGroup: String) -> Bool
    ) throws(KeychainFailure) -> [ItemPlace] {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in
            try opened.keychain.places(ofAccount: account, services: services, where: isIncluded)
        }
    }
}
