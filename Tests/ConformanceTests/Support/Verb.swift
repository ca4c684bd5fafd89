// SPDX-License-Identifier: Apache-2.0
import KeychainServices

/// One of the four calls, so that a table can be run through each.
enum Verb: CaseIterable, Sendable {
    case add
    case find
    case update
    case delete

    /// What the call answers to a dictionary: as what to add, else as the query.
    func status(_ dictionary: ItemDictionary) -> OSStatus {
        switch self {
        case .add: ConformanceTests.add(dictionary).status
        case .find: ConformanceTests.find(dictionary).status
        case .update: ConformanceTests.update(dictionary, [kSecAttrComment: "changed"])
        case .delete: ConformanceTests.delete(dictionary)
        }
    }
}
