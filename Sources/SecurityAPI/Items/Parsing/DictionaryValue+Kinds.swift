// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import KeychainCore

/// The types that the keys beside the attributes take.
extension DictionaryValue {
    /// A Boolean, and not the number that stands for one.
    func asBoolean() throws(ValueFault) -> Bool {
        guard case .boolean(let flag) = self else { throw .type }
        return flag
    }

    /// Data, and nothing that could be turned into it: a secret is never guessed at.
    func asData() throws(ValueFault) -> Data {
        guard case .data(let data) = self else { throw .type }
        return data
    }

    func asAccessControl() throws(ValueFault) -> SecAccessControl {
        guard case .accessControl(let accessControl) = self else { throw .type }
        return accessControl
    }

    /// Whether the person may be asked; whatever is neither of the two values that restrict it allows it.
    var interaction: Authentication.Interaction {
        switch self {
        case .string(kSecUseAuthenticationUIFail): .forbidden
        case .string(kSecUseAuthenticationUISkip): .skippingItems
        default: .allowed
        }
    }

    /// The number of items, `kSecMatchLimitOne` or `kSecMatchLimitAll`; -1 also means all.
    func asLimit() throws(ValueFault) -> ItemDictionary.Limit {
        switch self {
        case .string(kSecMatchLimitOne), .integer(1): return .one
        case .string(kSecMatchLimitAll), .integer(-1): return .all
        case .integer(let count):
            guard count >= 0 else { throw .value }
            return .count(Int(clamping: count))
        case .string, .unusableNumber: throw .value
        default: throw .type
        }
    }
}
