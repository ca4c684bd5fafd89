// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation
import Valet

/// A valet with a known number of items, in the keychain of this process.
struct FilledValet: Sendable {
    static let identifier = "benchmark"
    static let value = "a token of about forty characters, as most"

    let valet: Valet
    let itemCount: Int

    init(itemCount: Int) throws {
        guard let identifier = Identifier(nonEmpty: Self.identifier) else { throw CocoaError(.coderInvalidValue) }
        valet = Valet.valet(with: identifier, accessibility: .whenUnlocked)
        self.itemCount = itemCount
    }

    static func key(_ index: Int) -> String { "account-\(index)" }

    /// Returns the key of an item; consecutive numbers give keys far from each other.
    func spreadKey(_ index: Int) -> String { Self.key((index &* 7_919) % itemCount) }

    /// Adds the missing items if `presentCount` items exist.
    func fill(presentCount: Int) throws {
        for index in presentCount..<max(presentCount, itemCount) { try valet.setString(Self.value, forKey: Self.key(index)) }
    }

    /// Performs `operation` once.
    ///
    /// The key of a new item consists of `scope` and `index`; `remove` removes that item.
    func perform(_ operation: KeychainOperation, _ index: Int, scope: String = "") throws {
        switch operation {
        case .get: _ = try valet.string(forKey: spreadKey(index))
        case .contains: _ = try valet.containsObject(forKey: spreadKey(index))
        case .setNew: try valet.setString(Self.value, forKey: "new-\(scope)-\(index)")
        case .overwrite: try valet.setString(Self.value, forKey: spreadKey(index))
        case .remove: try valet.removeObject(forKey: "new-\(scope)-\(index)")
        case .allKeys: _ = try valet.allKeys()
        }
    }
}
