// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore

/// The items of a collection by their attributes, in memory.
///
/// It keeps hashes instead of texts: a few dozen bytes for each attribute of an item. The hash has 64 bits and a random seed, so no
/// program can choose attributes that collide with those of another one.
struct AttributeIndex: Sendable {
    private struct Entry {
        let number: UInt64
        /// The hash of all attributes, for exact matches.
        let attributes: UInt64
        /// The hash of all that is described.
        let content: UInt64
        /// The position of its owner.
        let owner: UInt32
        let hasSchema: Bool
        var isRemoved = false
    }

    /// In ascending order of their numbers, which is that of their creation.
    private var entries: [Entry] = []
    private var removedCount = 0
    /// The owners of the items: few.
    private var owners: [ItemOwner] = []
    private var ownerPositions: [ItemOwner: UInt32] = [:]
    /// The positions of the entries with an attribute that no other entry has: most values occur once.
    private var single: [UInt64: UInt32] = [:]
    /// The positions of the entries with an attribute, ascending.
    private var several: [UInt64: [UInt32]] = [:]

    init() {}

    init(_ items: [ItemDescription]) {
        entries.reserveCapacity(items.count)
        for item in items.sorted(by: { $0.number < $1.number }) { append(item) }
    }

    var count: Int { entries.count - removedCount }
    var largestNumber: UInt64 { entries.last?.number ?? 0 }
    /// All items, oldest first.
    var numbers: [UInt64] { entries.lazy.filter { !$0.isRemoved }.map(\.number) }
    /// Whether so many entries are those of removed items that the index should be made again.
    var isSparse: Bool { removedCount > 1_000 && removedCount > count }

    /// The owner of an item; nil if there is no such item.
    func owner(of number: UInt64) -> ItemOwner? {
        guard let position = position(of: number), !entries[position].isRemoved else { return nil }
        return owners[Int(entries[position].owner)]
    }

    func contains(_ number: UInt64) -> Bool { position(of: number).map { !entries[$0].isRemoved } ?? false }

    // MARK: Changes

    /// Adds an item.
    ///
    /// Returns false, without a change, if its number is not larger than all others.
    @discardableResult
    mutating func append(_ item: ItemDescription) -> Bool {
        guard entries.isEmpty || item.number > largestNumber else { return false }
        let position = UInt32(entries.count)
        entries.append(entry(item))
        for attribute in item.lookup.attributes { note(position, under: Self.hash(attribute)) }
        return true
    }

    mutating func remove(_ number: UInt64) {
        guard let position = position(of: number), !entries[position].isRemoved else { return }
        entries[position].isRemoved = true
        removedCount += 1
    }

    /// Replaces what is known of an item.
    mutating func update(_ item: ItemDescription, from former: ItemDescription) {
        guard let position = position(of: item.number), !entries[position].isRemoved else { return }
        entries[position] = entry(item)
        guard former.lookup != item.lookup else { return }
        for attribute in former.lookup.attributes { forget(UInt32(position), under: Self.hash(attribute)) }
        for attribute in item.lookup.attributes { note(UInt32(position), under: Self.hash(attribute)) }
    }

    private mutating func entry(_ item: ItemDescription) -> Entry {
        let owner = ownerPositions[item.owner] ?? UInt32(owners.count)
        if owner == owners.count {
            owners.append(item.owner)
            ownerPositions[item.owner] = owner
        }
        return Entry(
            number: item.number, attributes: Self.hash(item.lookup), content: Self.hash(item), owner: owner,
            hasSchema: item.lookup[ItemAttribute.schema] != nil)
    }

    private mutating func note(_ position: UInt32, under hash: UInt64) {
        if single[hash] == position { return }
        if let other = single.removeValue(forKey: hash) {
            several[hash] = [min(other, position), max(other, position)]
        } else if let last = several[hash]?.last {
            let index = last < position ? several[hash, default: []].count : Self.index(of: position, in: several[hash, default: []])
            // Another process has changed the attributes since they were read.
            if last >= position, several[hash]?[index] == position { return }
            several[hash, default: []].insert(position, at: index)
        } else {
            single[hash] = position
        }
    }

    private mutating func forget(_ position: UInt32, under hash: UInt64) {
        if single[hash] == position {
            single[hash] = nil
        } else {
            several[hash]?.removeAll { $0 == position }
        }
    }

    // MARK: Searches

    /// The items that have all of these attributes, oldest first; without attributes all items.
    ///
    /// An item without a schema also has the generic one.
    func numbers(matching lookup: ItemLookup) -> [UInt64] {
        var sought = lookup
        let allowsNoSchema = lookup[ItemAttribute.schema]?.hasSameBytes(as: ItemAttribute.genericSchema) ?? false
        if allowsNoSchema { sought[ItemAttribute.schema] = nil }
        let generic = Self.hash(ItemAttribute(name: ItemAttribute.schema, value: ItemAttribute.genericSchema))
        return positions(matching: sought)
            .filter { !allowsNoSchema || !entries[Int($0)].hasSchema || has(generic, at: $0) }.map { entries[Int($0)].number }
    }

    /// The oldest item that has exactly these attributes, of the owners for which the condition holds.
    func number(withExactly lookup: ItemLookup, ownedBy isIncluded: (ItemOwner) -> Bool) -> UInt64? {
        let hash = Self.hash(lookup)
        return positions(matching: lookup).lazy.map { entries[Int($0)] }
            .first { $0.attributes == hash && isIncluded(owners[Int($0.owner)]) }?.number
    }

    private func positions(matching lookup: ItemLookup) -> [UInt32] {
        guard !lookup.attributes.isEmpty else { return entries.indices.lazy.map(UInt32.init).filter { !entries[Int($0)].isRemoved } }
        let hashes = lookup.attributes.map(Self.hash)
        // The rarest attribute decides which entries are looked at.
        guard let rarest = hashes.min(by: { occurrenceCount($0) < occurrenceCount($1) }) else { return [] }
        let candidates = single[rarest].map { [$0] } ?? several[rarest] ?? []
        return candidates.filter { position in
            !entries[Int(position)].isRemoved && hashes.allSatisfy { $0 == rarest || has($0, at: position) }
        }
    }

    private func occurrenceCount(_ hash: UInt64) -> Int { single[hash] != nil ? 1 : several[hash]?.count ?? 0 }

    private func has(_ hash: UInt64, at position: UInt32) -> Bool {
        if let only = single[hash] { return only == position }
        guard let positions = several[hash] else { return false }
        let index = Self.index(of: position, in: positions)
        return index < positions.count && positions[index] == position
    }

    private func position(of number: UInt64) -> Int? {
        let index = Self.firstIndex(below: entries.count) { entries[$0].number >= number }
        return index < entries.count && entries[index].number == number ? index : nil
    }

    private static func index(of position: UInt32, in positions: [UInt32]) -> Int {
        firstIndex(below: positions.count) { positions[$0] >= position }
    }

    /// The first index for which the condition holds, which holds for all after it; `count` if it holds for none.
    private static func firstIndex(below count: Int, where condition: (Int) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if condition(middle) { high = middle } else { low = middle + 1 }
        }
        return low
    }

    // MARK: Comparison

    /// The items that are only in another index, only in this one, and in both with a different content.
    func changes(to other: AttributeIndex) -> (added: [UInt64], removed: [UInt64], changed: [UInt64]) {
        let (mine, theirs) = (contents, other.contents)
        return (
            theirs.keys.filter { mine[$0] == nil }.sorted(), mine.keys.filter { theirs[$0] == nil }.sorted(),
            theirs.filter { number, content in mine[number].map { $0 != content } ?? false }.keys.sorted()
        )
    }

    private var contents: [UInt64: UInt64] {
        Dictionary(entries.lazy.filter { !$0.isRemoved }.map { ($0.number, $0.content) }) { first, _ in first }
    }

    // MARK: Hashes

    private static func hash(_ attribute: ItemAttribute) -> UInt64 {
        hash { combine(attribute, into: &$0) }
    }

    private static func hash(_ lookup: ItemLookup) -> UInt64 {
        hash { hasher in for attribute in lookup.attributes { combine(attribute, into: &hasher) } }
    }

    private static func hash(_ item: ItemDescription) -> UInt64 {
        hash { hasher in
            hasher.combine(item.owner)
            combine(item.label, into: &hasher)
            for attribute in item.lookup.attributes { combine(attribute, into: &hasher) }
        }
    }

    private static func hash(_ body: (inout Hasher) -> Void) -> UInt64 {
        var hasher = Hasher()
        body(&hasher)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    private static func combine(_ attribute: ItemAttribute, into hasher: inout Hasher) {
        combine(attribute.name, into: &hasher)
        combine(attribute.value, into: &hasher)
    }

    /// The bytes, not the text: a `String` has the hash of all texts that Unicode takes for equivalent.
    private static func combine(_ text: String, into hasher: inout Hasher) {
        var text = text
        hasher.combine(text.utf8.count)
        // Hashed within the closure.
        text.withUTF8 { unsafe hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
#endif
