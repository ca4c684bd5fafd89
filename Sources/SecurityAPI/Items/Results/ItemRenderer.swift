// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainCore

/// The parts of an item that a call returns: the `kSecReturn…` keys that are true.
struct ResultParts: OptionSet {
    let rawValue: UInt8

    static let data = ResultParts(rawValue: 1 << 0)
    static let attributes = ResultParts(rawValue: 1 << 1)
    static let reference = ResultParts(rawValue: 1 << 2)
    static let persistentReference = ResultParts(rawValue: 1 << 3)
}

/// Converts items to the results of a call.
struct ItemRenderer: Sendable {
    private let parts: ResultParts
    private let verb: Verb
    private let layouts = LayoutCache()

    /// The call: the result of adding an item differs from that of finding it.
    enum Verb: Sendable {
        case add(callerNamedAccessControl: Bool)
        case copyMatching
    }

    init(parts: ResultParts, verb: Verb) {
        self.parts = parts
        self.verb = verb
    }

    /// Whether `render` returns a result for the item.
    func hasResult(_ item: KeychainItem) -> Bool {
        switch parts {
        case [], .reference: false
        case .data: (item.secret ?? emptySecret) != nil
        default: true
        }
    }

    /// Returns the parts of the item that the caller asked for; nil if it asked for none, or only for parts that passwords do not have.
    func render(_ item: KeychainItem) -> Any? {
        switch parts {
        case [], .reference: nil
        case .data: item.secret ?? emptySecret
        case .persistentReference: item.reference.data
        default: layouts.layout(for: item, parts, verb).dictionary(of: item)
        }
    }

    /// The result for an item without a secret: empty data for a new item, none for a found one.
    private var emptySecret: Data? {
        if case .add = verb { Data() } else { nil }
    }
}

/// A cache of the last layout: items found together mostly have the same attributes.
private final class LayoutCache: Sendable {
    private let last = LockedValue<DictionaryLayout?>(nil)

    func layout(for item: KeychainItem, _ parts: ResultParts, _ verb: ItemRenderer.Verb) -> DictionaryLayout {
        last.withLock { last in
            if let last, last.fits(item) { return last }
            let layout = DictionaryLayout(for: item, parts: parts, verb: verb)
            last = layout
            return layout
        }
    }
}

/// The keys of a result dictionary, and the source of each value.
///
/// A listing makes thousands of dictionaries with the same keys. `mapValues` makes them from the layout without hashing a key.
struct DictionaryLayout: Sendable {
    private let itemClass: ItemClass
    private let attributes: [Attribute]
    private let hasSecret: Bool
    private let sources: [String: Source]

    /// The source of a value.
    private enum Source {
        /// The attribute at this position in the item's attributes.
        case attribute(position: Int)
        /// An attribute of the primary key that the item does not have. Its value is never null.
        case missing(AttributeValue)
        case accessControl
        case itemClass
        case secret
        case persistentReference
    }

    /// Creates the layout of `item` and of all items that have the same attributes.
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

    /// Whether `item` has the same attributes as the item that the layout was created for.
    func fits(_ item: KeychainItem) -> Bool {
        let entries = item.attributes.entries
        guard item.reference.itemClass == itemClass, (item.secret != nil) == hasSecret, entries.count == attributes.count else {
            return false
        }
        return zip(entries, attributes).allSatisfy { $0.attribute == $1 }
    }

    /// Returns the dictionary of an item that fits.
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

    // MARK: Contents

    /// Whether the result includes the attributes.
    ///
    /// As on Apple platforms, a search that returns secrets in dictionaries includes them, requested or not. Programs rely on it.
    private static func includesAttributes(_ parts: ResultParts, _ verb: ItemRenderer.Verb) -> Bool {
        switch verb {
        case .add: parts.contains(.attributes)
        case .copyMatching: parts.contains(.attributes) || parts.contains(.data)
        }
    }

    /// Whether the result includes an access control object.
    ///
    /// The result of an addition does only if the caller passed one.
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

    /// Returns numbers as objects, as Apple's functions do, so that `as? Bool` and `as? Int` both work.
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
