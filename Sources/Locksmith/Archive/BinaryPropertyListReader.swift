// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// A value in a property list, of the kinds that keyed archives use.
enum PropertyListNode {
    case boolean(Bool)
    case integer(Int64)
    /// An integer too large for the other case.
    case largeInteger(UInt64)
    case real(Double)
    /// Seconds since the reference date.
    case date(Double)
    case data(Data)
    case string(String)
    /// The index of an object in the archive.
    case identifier(Int)
    case array([PropertyListNode])
    case dictionary([String: PropertyListNode])

    var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    var real: Double? {
        switch self {
        case .real(let number), .date(let number): number
        case .integer(let number): Double(number)
        default: nil
        }
    }

    var data: Data? {
        if case .data(let data) = self { data } else { nil }
    }

    var identifier: Int? {
        if case .identifier(let number) = self { number } else { nil }
    }

    var array: [PropertyListNode]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    var dictionary: [String: PropertyListNode]? {
        if case .dictionary(let entries) = self { entries } else { nil }
    }
}

/// Reads binary property lists.
///
/// Foundation's reader has no public API for the object references in keyed archives, and another program of the same access group may
/// have written these bytes, so this reader trusts none of them. It checks each position before reading it. Depth and size cannot exceed
/// what that many bytes can represent.
///
/// Source: the comment in Apple's `CFBinaryPList.c`.
struct BinaryPropertyListReader {
    /// The maximum depth: keyed archives are flat, since their objects refer to each other by index.
    private static let maximumDepth = 8

    private let bytes: [UInt8]
    private var offsetSize = 0
    private var referenceSize = 0
    private var objectCount = 0
    private var tableOffset = 0
    /// The objects read so far with their heights, because several objects may contain the same one.
    private var cache: [Int: (node: PropertyListNode, height: Int)] = [:]
    /// The height of the object that was read last.
    private var height = 0
    /// The number of elements and bytes that may still be read.
    ///
    /// Each takes at least one byte in a valid list, so this detects objects that overlap.
    private var budget: Int

    private init(_ data: Data) {
        bytes = [UInt8](data)
        budget = bytes.count
    }

    /// Returns the property list in `data`.
    static func read(_ data: Data) throws(LocksmithError) -> PropertyListNode {
        var reader = BinaryPropertyListReader(data)
        let top = try reader.readTrailer()
        return try reader.object(top, depth: 0)
    }

    // MARK: Structure

    /// Reads the trailer, which locates the offset table.
    ///
    /// - Returns: The index of the top-level object.
    private mutating func readTrailer() throws(LocksmithError) -> Int {
        let trailerSize = 32
        guard bytes.count >= trailerSize + 8, bytes.starts(with: Array("bplist00".utf8)) else { throw .decode }
        let trailer = bytes.count - trailerSize
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else { throw .decode }
        objectCount = try integer(at: trailer + 8, size: 8)
        let top = try integer(at: trailer + 16, size: 8)
        tableOffset = try integer(at: trailer + 24, size: 8)
        guard objectCount <= bytes.count, tableOffset <= trailer, objectCount * offsetSize <= trailer - tableOffset else { throw .decode }
        return top
    }

    private mutating func object(_ number: Int, depth: Int) throws(LocksmithError) -> PropertyListNode {
        if let found = cache[number] {
            guard depth + found.height < Self.maximumDepth else { throw .decode }
            height = found.height
            return found.node
        }
        guard depth < Self.maximumDepth, number < objectCount else { throw .decode }
        height = 0
        let node = try node(at: try integer(at: tableOffset + number * offsetSize, size: offsetSize), depth: depth)
        cache[number] = (node, height)
        return node
    }

    private mutating func node(at offset: Int, depth: Int) throws(LocksmithError) -> PropertyListNode {
        let low = Int(try byte(at: offset) & 0x0f)
        switch try byte(at: offset) >> 4 {
        case 0x0 where low == 8: return .boolean(false)
        case 0x0 where low == 9: return .boolean(true)
        case 0x1 where low <= 4: return try number(at: offset + 1, size: 1 << low)
        case 0x2 where low == 2: return .real(Double(Float(bitPattern: UInt32(try bits(at: offset + 1, size: 4)))))
        case 0x2 where low == 3: return .real(Double(bitPattern: try bits(at: offset + 1, size: 8)))
        case 0x3 where low == 3: return .date(Double(bitPattern: try bits(at: offset + 1, size: 8)))
        case 0x4: return .data(Data(bytes[try contents(at: offset, low: low, elementSize: 1)]))
        case 0x5:
            let characters = bytes[try contents(at: offset, low: low, elementSize: 1)]
            guard characters.allSatisfy({ $0 < 0x80 }) else { throw .decode }
            return .string(String(decoding: characters, as: UTF8.self))
        case 0x6:
            let range = try contents(at: offset, low: low, elementSize: 2)
            let units = stride(from: range.lowerBound, to: range.upperBound, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
            return .string(String(decoding: units, as: UTF16.self))
        case 0x8: return .identifier(try integer(at: offset + 1, size: low + 1))
        case 0xa: return .array(try objects(in: try contents(at: offset, low: low, elementSize: referenceSize), depth: depth))
        case 0xd: return try dictionary(in: try contents(at: offset, low: low, elementSize: 2 * referenceSize), depth: depth)
        default: throw .decode
        }
    }

    private mutating func objects(in range: Range<Int>, depth: Int) throws(LocksmithError) -> [PropertyListNode] {
        var elements: [PropertyListNode] = []
        var maximumHeight = 0
        for position in stride(from: range.lowerBound, to: range.upperBound, by: referenceSize) {
            elements.append(try object(try integer(at: position, size: referenceSize), depth: depth + 1))
            maximumHeight = max(maximumHeight, height + 1)
        }
        height = maximumHeight
        return elements
    }

    /// Reads a dictionary: first all keys, then all values.
    private mutating func dictionary(in range: Range<Int>, depth: Int) throws(LocksmithError) -> PropertyListNode {
        let middle = range.lowerBound + range.count / 2
        let keys = try objects(in: range.lowerBound..<middle, depth: depth)
        let keyHeight = height
        let values = try objects(in: middle..<range.upperBound, depth: depth)
        height = max(height, keyHeight)
        var entries: [String: PropertyListNode] = [:]
        for (key, value) in zip(keys, values) {
            guard let key = key.string, entries.updateValue(value, forKey: key) == nil else { throw .decode }
        }
        return .dictionary(entries)
    }

    /// Returns the range of an object's contents.
    ///
    /// The count is in its first byte, or in an integer after it.
    private mutating func contents(at offset: Int, low: Int, elementSize: Int) throws(LocksmithError) -> Range<Int> {
        var start = offset + 1
        var count = low
        if low == 0xf {
            let marker = try byte(at: start)
            guard marker >> 4 == 1, marker & 0x0f <= 3 else { throw .decode }
            let size = 1 << Int(marker & 0x0f)
            count = try integer(at: start + 1, size: size)
            start += 1 + size
        }
        guard count <= budget, count * elementSize <= bytes.count - start else { throw .decode }
        budget -= count
        return start..<(start + count * elementSize)
    }

    // MARK: Numbers

    private func byte(at offset: Int) throws(LocksmithError) -> UInt8 {
        guard bytes.indices.contains(offset) else { throw .decode }
        return bytes[offset]
    }

    /// Reads at most eight bytes, the most significant first.
    private func bits(at offset: Int, size: Int) throws(LocksmithError) -> UInt64 {
        guard offset <= bytes.count, size <= bytes.count - offset else { throw .decode }
        return bytes[offset..<(offset + size)].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads an offset, a count, or an index.
    ///
    /// If it has more than eight bytes, the leading ones must be zero.
    private func integer(at offset: Int, size: Int) throws(LocksmithError) -> Int {
        let leading = max(0, size - 8)
        guard try bits(at: offset, size: leading) == 0,
            let number = Int(exactly: try bits(at: offset + leading, size: size - leading))
        else { throw .decode }
        return number
    }

    /// Reads an integer: eight bytes are signed, fewer are unsigned, and sixteen hold an unsigned integer that needs all 64 bits.
    private func number(at offset: Int, size: Int) throws(LocksmithError) -> PropertyListNode {
        guard size == 16 else {
            let bits = try bits(at: offset, size: size)
            return .integer(Int64(bitPattern: bits))
        }
        let high = try bits(at: offset, size: 8)
        let low = try bits(at: offset + 8, size: 8)
        switch high {
        case 0: return Int64(exactly: low).map(PropertyListNode.integer) ?? .largeInteger(low)
        case .max where Int64(bitPattern: low) < 0: return .integer(Int64(bitPattern: low))
        default: throw .decode
        }
    }
}
