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
    /// Key by key, because Foundation's cast sees nothing in a dictionary of a class that somebody derived.
    func stringKeyed() throws(KeychainFailure) -> [String: Any] {
        var dictionary: [String: Any] = [:]
        dictionary.reserveCapacity(count)
        for (key, value) in self {
            guard let name = key as? String else { throw KeychainFailure(.parameter, "a key of the dictionary is not a string") }
            dictionary[name] = value
        }
        return dictionary
    }
}
