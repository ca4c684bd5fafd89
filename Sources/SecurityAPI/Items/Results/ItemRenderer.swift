// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainCore

/// What a call shall deliver of an item: the `kSecReturn…` keys that are true.
struct ResultParts: OptionSet {
    let rawValue: UInt8

    static let data = ResultParts(rawValue: 1 << 0)
    static let attributes = ResultParts(rawValue: 1 << 1)
    static let reference = ResultParts(rawValue: 1 << 2)
    static let persistentReference = ResultParts(rawValue: 1 << 3)
}

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

/// The keys of a result dictionary, and where the value of each comes from.
///
/// Making a dictionary from another one with `mapValues` hashes no key, and a listing makes thousands with the same keys.
struct DictionaryLayout {
    private let itemClass: ItemClass
    private let attributes: [Attribute]
    private let hasSecret: Bool
    private let sources: [String: Source]

    /// Where a value comes from.
    private enum Source {
        /// The attribute at this position of the item's.
        case attribute(position: Int)
        /// A part of the primary key that the item does not have; it is never null.
        case missing(AttributeValue)
        case accessControl
        case itemClass
        case secret
        case persistentReference
    }

    /// The layout for `item` and all that have the same attributes.
    init(for item: KeychainItem, parts: ResultParts, verb: ItemRenderer.Verb) {
        itemClass = item.reference.itemClass
        attributes = item.attributes.entries.map(\.attribute)
        hasSecret = item.secret != nil
        var sources: [String: Source] = [:]
        if Self.includesAttributes(parts, verb) {
            for (position, attribute) in attributes.enumerated() where Self.isReturned(attribute, verb) {
                sources[attribute.name] = .attribute(position: position)
            }
            for attribute in PrimaryKey.attributes(of: itemClass) where sources[attribute.name] == nil && Self.isNeverNull(attribute) {
                sources[attribute.name] = .missing(PrimaryKey.defaultValue(of: attribute))
            }
        }
        if Self.includesAccessControl(parts, verb) { sources[kSecAttrAccessControl] = .accessControl }
        if parts.contains(.reference) { sources[kSecClass] = .itemClass }
        if parts.contains(.data), hasSecret { sources[kSecValueData] = .secret }
        if parts.contains(.persistentReference) { sources[kSecValuePersistentRef] = .persistentReference }
        self.sources = sources
    }

    /// Whether `item` has the same attributes as the one the layout was made for.
    func fits(_ item: KeychainItem) -> Bool {
        let entries = item.attributes.entries
        guard item.reference.itemClass == itemClass, (item.secret != nil) == hasSecret, entries.count == attributes.count else {
            return false
        }
        return zip(entries, attributes).allSatisfy { $0.attribute == $1 }
    }

    /// The dictionary of an item that fits.
    func dictionary(of item: KeychainItem) -> [String: Any] {
        let entries = item.attributes.entries
        return sources.mapValues { source in
            switch source {
            case .attribute(let position): Self.render(entries[position].value)
            case .missing(let value): Self.render(value)
            case .accessControl: SecAccessControl(of: item)
            case .itemClass: itemClass.rawValue
            case .secret: item.secret ?? Data()
            case .persistentReference: item.reference.data
            }
        }
    }

    // MARK: What belongs in it

    /// A search for secrets describes the items too, asked or not; programs have come to rely on it.
    private static func includesAttributes(_ parts: ResultParts, _ verb: ItemRenderer.Verb) -> Bool {
        switch verb {
        case .add: parts.contains(.attributes)
        case .copyMatching: parts.contains(.attributes) || parts.contains(.data)
        }
    }

    /// A found item always has an access control object, a new one only if the caller named one.
    private static func includesAccessControl(_ parts: ResultParts, _ verb: ItemRenderer.Verb) -> Bool {
        switch verb {
        case .add(let callerNamedAccessControl): parts.contains(.attributes) && callerNamedAccessControl
        case .copyMatching: parts.contains(.attributes)
        }
    }

    private static func isReturned(_ attribute: Attribute, _ verb: ItemRenderer.Verb) -> Bool {
        switch (verb, attribute) {
        case (.add, .tombstone), (.add, .multiUser): false
        default: true
        }
    }

    private static func isNeverNull(_ attribute: Attribute) -> Bool {
        switch attribute {
        case .syncViewHint, .tokenID, .multiUser: false
        default: true
        }
    }

    // MARK: Values

    private static let zero = NSNumber(value: 0)
    private static let one = NSNumber(value: 1)

    /// Numbers are objects, as Apple delivers them, so that `as? Bool` and `as? Int` both work.
    private static func render(_ value: AttributeValue) -> Any {
        switch value {
        case .string(let text): text
        case .data(let data): data
        case .number(0): zero
        case .number(1): one
        case .number(let number): NSNumber(value: number)
        case .date(let seconds): Date(timeIntervalSinceReferenceDate: seconds)
        }
    }
}
