// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import KeychainCore

/// Turns items into what a call delivers.
struct ItemRenderer {
    private let parts: ResultParts
    private let verb: Verb
    /// The layout of the last dictionary: items found together mostly have the same attributes.
    private var layout: DictionaryLayout?

    /// A new item and a found one are described differently.
    enum Verb {
        case add(callerNamedAccessControl: Bool)
        case copyMatching
    }

    init(parts: ResultParts, verb: Verb) {
        self.parts = parts
        self.verb = verb
    }

    /// The item as the caller asked for it; nil if nothing was asked for, or only what passwords do not have.
    mutating func render(_ item: KeychainItem) -> Any? {
        switch parts {
        case [], .reference: nil
        case .data: item.secret ?? emptySecret
        case .persistentReference: item.reference.data
        default: dictionary(of: item)
        }
    }

    /// The items as the caller asked for them; those that have nothing of it are left out.
    mutating func render(_ items: [KeychainItem]) -> [Any] {
        var results: [Any] = []
        results.reserveCapacity(items.count)
        for item in items {
            if let result = render(item) { results.append(result) }
        }
        return results
    }

    /// What a new item without a secret has as one; a found one has none.
    private var emptySecret: Data? {
        if case .add = verb { Data() } else { nil }
    }

    private mutating func dictionary(of item: KeychainItem) -> [String: Any] {
        if let layout, layout.fits(item) { return layout.dictionary(of: item) }
        let fitting = DictionaryLayout(for: item, parts: parts, verb: verb)
        layout = fitting
        return fitting.dictionary(of: item)
    }
}
