// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The condition that finds the candidate rows of a query with an index.
///
/// The other conditions of the query are checked on the candidates.
enum SearchPlan {
    /// There are few rows, usually one.
    case selective(SelectiveCondition)
    /// There may be many rows.
    case listing(ListingCondition)

    enum SelectiveCondition {
        case id, leadingKey, primaryKey
    }

    enum ListingCondition {
        case service(IndexDigest)
        case account(IndexDigest)
        case attribute(AttributeDigest)
        case itemClass(ItemClass)
        case none
    }

    init(_ query: RowQuery) {
        if query.id != nil {
            self = .selective(.id)
        } else if query.serviceDigest != nil, query.accountDigest != nil {
            self = .selective(query.remainingKeyDigest == nil ? .leadingKey : .primaryKey)
        } else if let service = query.serviceDigest {
            self = .listing(.service(service))
        } else if let account = query.accountDigest {
            self = .listing(.account(account))
        } else if let attribute = query.attributeDigests.first {
            self = .listing(.attribute(attribute))
        } else if let itemClass = query.itemClass {
            self = .listing(.itemClass(itemClass))
        } else {
            self = .listing(.none)
        }
    }
}

extension SearchPlan.SelectiveCondition {
    /// The statement that returns the rows, in no particular order.
    func rows(includingSecrets: Bool) -> StoreStatement {
        switch self {
        case .id: includingSecrets ? .rowsByIDWithSecret : .rowsByID
        case .leadingKey: includingSecrets ? .rowsByServiceAndAccountWithSecret : .rowsByServiceAndAccount
        case .primaryKey: includingSecrets ? .rowsByPrimaryKeyWithSecret : .rowsByPrimaryKey
        }
    }

    /// The statement that returns the numbers of the rows, and reads no page of the table.
    var indexedNumbers: StoreStatement {
        switch self {
        case .id: .indexedNumbersByID
        case .leadingKey, .primaryKey: .indexedNumbersByKey
        }
    }
}

extension SearchPlan.ListingCondition {
    /// The statement that returns the rows in ascending order of their numbers.
    func rows(includingSecrets: Bool) -> StoreStatement {
        switch self {
        case .service: includingSecrets ? .listByServiceWithSecret : .listByService
        case .account: includingSecrets ? .listByAccountWithSecret : .listByAccount
        case .attribute: includingSecrets ? .listByAttributeWithSecret : .listByAttribute
        case .itemClass: includingSecrets ? .listByClassWithSecret : .listByClass
        case .none: includingSecrets ? .listAllWithSecret : .listAll
        }
    }

    /// The statement that returns the numbers of the rows, or of all rows, and reads no page of the table.
    var indexedNumbers: StoreStatement {
        switch self {
        case .service: .indexedNumbersByService
        case .account: .indexedNumbersByAccount
        case .attribute: .indexedNumbersByAttribute
        case .itemClass, .none: .allIndexedNumbers
        }
    }
}

extension SQLiteStatement {
    /// Binds the parameters of a statement that lists rows.
    func bind(_ condition: SearchPlan.ListingCondition) {
        switch condition {
        case .service(let digest), .account(let digest): bind(digest, at: 1)
        case .attribute(let attribute):
            bind(Int64(attribute.attribute.rawValue), at: 1)
            bind(attribute.digest, at: 2)
        case .itemClass(let itemClass): bind(Int64(itemClass.code), at: 1)
        case .none: break
        }
    }
}
