// SPDX-License-Identifier: Apache-2.0

/// The attributes of an item or of a search, in the order of their numbers.
///
/// A sorted array, not a dictionary: there are about ten, and the order is the canonical one.
package struct ItemAttributes: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        package let attribute: Attribute
        package let value: AttributeValue
    }

    package private(set) var entries: [Entry] = []

    package init() {}

    package init(_ values: KeyValuePairs<Attribute, AttributeValue>) {
        for (attribute, value) in values { self[attribute] = value }
    }

    /// Takes entries that are in strictly ascending order of attribute already.
    init(ascending entries: [Entry]) {
        self.entries = entries
    }

    package var isEmpty: Bool { entries.isEmpty }

    /// How many bytes the values have together.
    var byteCount: Int { entries.reduce(0) { $0 + $1.value.byteCount } }

    package subscript(attribute: Attribute) -> AttributeValue? {
        get { entries.first { $0.attribute == attribute }?.value }
        set {
            let position = entries.firstIndex { $0.attribute.rawValue >= attribute.rawValue } ?? entries.endIndex
            let exists = position < entries.endIndex && entries[position].attribute == attribute
            switch (exists, newValue) {
            case (true, let value?): entries[position] = Entry(attribute: attribute, value: value)
            case (true, nil): entries.remove(at: position)
            case (false, let value?): entries.insert(Entry(attribute: attribute, value: value), at: position)
            case (false, nil): break
            }
        }
    }

    package func text(_ attribute: Attribute) -> String? {
        if case .string(let text)? = self[attribute] { text } else { nil }
    }

    package func flag(_ attribute: Attribute) -> Bool? {
        if case .number(let number)? = self[attribute] { number != 0 } else { nil }
    }

    package func seconds(_ attribute: Attribute) -> Double? {
        if case .date(let seconds)? = self[attribute] { seconds } else { nil }
    }

    /// These attributes with those of `changes` laid over them.
    package func updated(with changes: ItemAttributes) -> ItemAttributes {
        var result = self
        for entry in changes.entries { result[entry.attribute] = entry.value }
        return result
    }
}
