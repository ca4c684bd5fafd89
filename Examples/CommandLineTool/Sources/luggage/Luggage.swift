// SPDX-License-Identifier: Apache-2.0
import Valet

struct Luggage {
    private let vault = Valet.valet(with: "luggage", accessibility: .whenUnlocked)

    /// Returns nil only if it is certain that no combination is stored.
    func combination() throws(ValetFailure) -> String? {
        try vault.valueIfPresent(for: .combination)
    }

    func setCombination(_ combination: String) throws(ValetFailure) {
        try vault.set(combination, for: .combination)
    }
}

extension ValetKey<String> {
    static let combination = ValetKey("combination")
}
