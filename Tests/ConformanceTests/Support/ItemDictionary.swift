// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices

/// What the SecItem functions take and give.
typealias ItemDictionary = [CFString: Any]

extension ItemDictionary {
    func with(_ key: CFString, _ value: Any) -> ItemDictionary {
        merging([key: value]) { $1 }
    }

    func with(_ others: ItemDictionary) -> ItemDictionary {
        merging(others) { $1 }
    }

    func without(_ unwanted: CFString...) -> ItemDictionary {
        filter { !unwanted.contains($0.key) }
    }

    /// Whether both say the same, type by type.
    func isEqual(to other: ItemDictionary?) -> Bool {
        guard let other else { return false }
        return (self as NSDictionary).isEqual(other as NSDictionary)
    }
}
