// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

extension MatchRequest {
    /// The search that the dictionary of `SecItemCopyMatching` describes.
    init(_ dictionary: ItemDictionary) throws(KeychainFailure) {
        if let key = dictionary.certificateOnlyMatchKey {
            throw KeychainFailure(.unimplemented, "\(key) is for certificates and identities only")
        }
        guard dictionary.hostOrSubdomain == nil || dictionary.itemClass == .internetPassword else {
            throw KeychainFailure(.unimplemented, "kSecMatchHostOrSubdomainOfHost is for internet passwords only")
        }
        if dictionary.reference != nil {
            guard !dictionary.hasAttributes else {
                throw KeychainFailure(.parameter, "a search by persistent reference takes no attributes")
            }
        }
        guard dictionary.limit != .count(0) else { throw KeychainFailure(.itemNotFound, "kSecMatchLimit is 0") }
        self.init(
            query: try ItemQuery(dictionary), includesSecrets: dictionary.returns.contains(.data),
            attributes: dictionary.returns == .data ? .none : .all, authentication: dictionary.authentication)
        limit =
            switch dictionary.limit {
            case .one: 1
            case .count(let count): count
            case .all: nil
            }
    }
}

extension ItemDictionary {
    /// Whether any attribute is named.
    ///
    /// `kSecAttrSynchronizableAny` is none: it takes a filter away.
    fileprivate var hasAttributes: Bool {
        !attributes.isEmpty || accessibility != nil || accessControl != nil || tombstone != nil
            || !(synchronizable == nil || synchronizable == .any)
    }
}
