// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// A value to be written in a migration, and the item it comes from.
struct PlannedCopy {
    let original: StoredItem
    let key: String
    let value: Data
}
