// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// Writes binary property lists; see ``BinaryPropertyListReader`` for the source of the format.
struct BinaryPropertyListWriter {
    /// A value with the indices of its elements.
    private enum Entry {
        case leaf(PropertyListNode)
        case array([Int])
        case dictionary(keys: [Int], values: [Int])
    }

    private var entries: [Entry] = []
    /// The indices of strings.
    ///
    /// Each string is written once, because many dictionaries have the same keys.
    private var stringNumbers: [String: Int] = [:]

    /// Returns the bytes of a property list.
    static func write(_ node: PropertyListNode) -> Data {
        var writer = BinaryPropertyListWriter()
        let top = writer.add(node)
        return writer.bytes(top: top)
    }

    /// Adds a value and its contents and returns its index.
    private mutating func add(_ node: PropertyListNode) -> Int {
        if let text = node.string, let number = stringNumbers[text], isByteEqual(text, entries[number]) { return number }
        let number = entries.count
        entries.append(.leaf(node))
        switch node {
        case .string(let text): stringNumbers[text] = number
        case .array(let elements): entries[number] = .array(elements.map { add($0) })
        case .dictionary(let dictionary):
            // Sorted by key, so that equal values have equal bytes.
            let pairs = dictionary.sorted { $0.key < $1.key }
            let keys = pairs.map { add(.string($0.key)) }
            entries[number] = .dictionary(keys: keys, values: pairs.map { add($0.value) })
        default: break
        }
        return number
    }

    /// Returns whether an entry is a string with the same bytes: Swift compares by canonical equivalence.
    private func isByteEqual(_ text: String, _ entry: Entry) -> Bool {
        guard case .leaf(.string(let other)) = entry else { return false }
        return text.utf8.elementsEqual(other.utf8)
    }

    private func bytes(top: Int) -> Data {
        let referenceSize = Self.size(of: entries.count)
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        for entry in entries {
            offsets.append(bytes.count)
            Self.append(entry, to: &bytes, referenceSize: referenceSize)
        }
        let tableOffset = bytes.count
        let offsetSize = Self.size(of: tableOffset)
        for offset in offsets { Self.append(UInt64(offset), size: offsetSize, to: &bytes) }
        bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
        for number in [entries.count, top, tableOffset] { Self.append(UInt64(number), size: 8, to: &bytes) }
        return Data(bytes)
    }

    private static func append(_ entry: Entry, to bytes: inout [UInt8], referenceSize: Int) {
        switch entry {
        case .leaf(let node): append(node, to: &bytes)
        case .array(let elements):
            appendMarker(0xa0, count: elements.count, to: &bytes)
            for number in elements { append(UInt64(number), size: referenceSize, to: &bytes) }
        case .dictionary(let keys, let values):
            appendMarker(0xd0, count: keys.count, to: &bytes)
            for number in keys + values { append(UInt64(number), size: referenceSize, to: &bytes) }
        }
    }

    private static func append(_ leaf: PropertyListNode, to bytes: inout [UInt8]) {
        switch leaf {
        case .boolean(let flag): bytes.append(flag ? 0x09 : 0x08)
        case .integer(let number): appendInteger(number, to: &bytes)
        case .largeInteger(let number):
            bytes.append(0x14)
            append(0, size: 8, to: &bytes)
            append(number, size: 8, to: &bytes)
        case .real(let number):
            bytes.append(0x23)
            append(number.bitPattern, size: 8, to: &bytes)
        case .date(let seconds):
            bytes.append(0x33)
            append(seconds.bitPattern, size: 8, to: &bytes)
        case .data(let data):
            appendMarker(0x40, count: data.count, to: &bytes)
            bytes += data
        case .string(let text) where text.utf8.allSatisfy({ $0 < 0x80 }):
            appendMarker(0x50, count: text.utf8.count, to: &bytes)
            bytes += text.utf8
        case .string(let text):
            appendMarker(0x60, count: text.utf16.count, to: &bytes)
            for unit in text.utf16 { append(UInt64(unit), size: 2, to: &bytes) }
        case .identifier(let number):
            let size = size(of: number)
            bytes.append(0x80 | UInt8(size - 1))
            append(UInt64(number), size: size, to: &bytes)
        // These have entries of their own.
        case .array, .dictionary: break
        }
    }

    private static func appendMarker(_ marker: UInt8, count: Int, to bytes: inout [UInt8]) {
        guard count >= 0xf else {
            bytes.append(marker | UInt8(count))
            return
        }
        bytes.append(marker | 0xf)
        appendInteger(Int64(count), to: &bytes)
    }

    private static func appendInteger(_ number: Int64, to bytes: inout [UInt8]) {
        let size = number < 0 ? 8 : size(of: Int(number))
        bytes.append(0x10 | UInt8(size.trailingZeroBitCount))
        append(UInt64(bitPattern: number), size: size, to: &bytes)
    }

    /// Appends the low bytes of a number, the most significant first.
    private static func append(_ number: UInt64, size: Int, to bytes: inout [UInt8]) {
        for index in (0..<size).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(index)))) }
    }

    /// Returns the number of bytes for a nonnegative number: 1, 2, 4 or 8.
    private static func size(of number: Int) -> Int {
        switch number {
        case ...0xff: 1
        case ...0xffff: 2
        case ...0xffff_ffff: 4
        default: 8
        }
    }
}
