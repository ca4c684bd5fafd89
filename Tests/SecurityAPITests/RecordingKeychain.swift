// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Synchronization

@testable import SecurityAPI

/// A keychain that keeps nothing: it remembers what it was asked, and answers with the items it was given.
final class RecordingKeychain: Keychain {
    private let items: [KeychainItem]
    private let recorded = Mutex(Requests())

    struct Requests {
        var added: [AddRequest] = []
        var matched: [MatchRequest] = []
        var updated: [UpdateRequest] = []
        var deleted: [DeleteRequest] = []

        var isEmpty: Bool { added.isEmpty && matched.isEmpty && updated.isEmpty && deleted.isEmpty }
    }

    init(items: [KeychainItem] = [.password()]) {
        self.items = items
    }

    var requests: Requests { recorded.withLock { $0 } }

    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        recorded.withLock { $0.added.append(request) }
        guard let item = items.first else { throw KeychainFailure(.duplicateItem, "there is one") }
        return item
    }

    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        recorded.withLock { $0.matched.append(request) }
        guard !items.isEmpty else { throw KeychainFailure(.itemNotFound, "there is none") }
        return Array(items.prefix(request.limit ?? items.count))
    }

    func update(_ request: UpdateRequest) throws(KeychainFailure) {
        recorded.withLock { $0.updated.append(request) }
    }

    func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        recorded.withLock { $0.deleted.append(request) }
    }
}

extension KeychainItem {
    /// A generic password as a keychain gives it back.
    static func password(
        _ additional: KeyValuePairs<Attribute, AttributeValue> = [:], accessControl: AccessControl = AccessControl(.whenUnlocked),
        secret: Data? = Data("open sesame".utf8)
    ) -> KeychainItem {
        var attributes = ItemAttributes([
            .account: .string("Skroob"), .service: .string("luggage"), .accessGroup: .string("group"),
            .accessible: .string(accessControl.accessibility.rawValue), .synchronizable: .number(0), .tombstone: .number(0),
            .multiUser: .data(Data()), .creationDate: .date(1000), .modificationDate: .date(2000), .sha1: .data(Data(count: 20)),
        ])
        for (attribute, value) in additional { attributes[attribute] = value }
        return KeychainItem(
            reference: PersistentReference(itemClass: .genericPassword, id: ItemID(high: 1, low: 2)), attributes: attributes,
            accessControl: accessControl, secret: secret)
    }

    static let persistentReference = Data("genp".utf8) + Data([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2])
}
