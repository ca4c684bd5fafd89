// SPDX-License-Identifier: Apache-2.0

/// What a call shall deliver of an item: the `kSecReturn…` keys that are true.
struct ResultParts: OptionSet {
    let rawValue: UInt8

    static let data = ResultParts(rawValue: 1 << 0)
    static let attributes = ResultParts(rawValue: 1 << 1)
    static let reference = ResultParts(rawValue: 1 << 2)
    static let persistentReference = ResultParts(rawValue: 1 << 3)
}
