// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import KeychainCore

/// A dictionary as a caller may hand one in.
protocol CallerDictionary {
    /// The dictionary with its keys as strings; other keys mean nothing to a keychain.
    func stringKeyed() throws(KeychainFailure) -> [String: Any]
}

extension [String: Any]: CallerDictionary {
    func stringKeyed() -> [String: Any] { self }
}

extension NSDictionary: CallerDictionary {
    func stringKeyed() throws(KeychainFailure) -> [String: Any] {
        guard let dictionary = self as? [String: Any] else {
            throw KeychainFailure(.parameter, "a key of the dictionary is not a string")
        }
        return dictionary
    }
}
