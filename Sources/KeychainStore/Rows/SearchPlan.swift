// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// How the rows of a query are found.
///
/// Every other condition is checked on the rows found.
enum SearchPlan {
    /// An index gives a few rows at the most, usually one: read them as they come.
    case fewRows(StoreStatement)
    /// Perhaps many: note their numbers first, then read one row at a time.
    case byNumbers(StoreStatement, NumberParameters)

    enum NumberParameters {
        case digest(IndexDigest)
        case attribute(AttributeDigest)
        case itemClass(ItemClass)
        case none
    }

    init(_ query: RowQuery, includingSecrets: Bool) {
        if query.id != nil {
            self = .fewRows(includingSecrets ? .rowsByIDWithSecret : .rowsByID)
        } else if query.serviceDigest != nil, query.accountDigest != nil {
            if query.remainingKeyDigest != nil {
                self = .fewRows(includingSecrets ? .rowsByPrimaryKeyWithSecret : .rowsByPrimaryKey)
            } else {
                self = .fewRows(includingSecrets ? .rowsByServiceAndAccountWithSecret : .rowsByServiceAndAccount)
            }
        } else if let service = query.serviceDigest {
            self = .byNumbers(.numbersByService, .digest(service))
        } else if let account = query.accountDigest {
            self = .byNumbers(.numbersByAccount, .digest(account))
        } else if let attribute = query.attributeDigests.first {
            self = .byNumbers(.numbersByAttribute, .attribute(attribute))
        } else if let itemClass = query.itemClass {
            self = .byNumbers(.numbersByClass, .itemClass(itemClass))
        } else {
            self = .byNumbers(.allNumbers, .none)
        }
    }
}
