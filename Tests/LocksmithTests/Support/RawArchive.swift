// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A binary property list made object by object, so that it can be one that no program writes.
struct RawPropertyList {
    private var objects: [[UInt8]] = []
    /// Which object's bytes each number stands for.
    private var numbers: [Int] = []

    private static func bigEndian(_ number: Int, byteCount: Int) -> [UInt8] {
        (0..<byteCount).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    private static func header(_ kind: UInt8, _ count: Int) -> [UInt8] { [kind << 4 | 0xf, 0x12] + bigEndian(count, byteCount: 4) }

    mutating func add(_ bytes: [UInt8]) -> Int {
        objects.append(bytes)
        numbers.append(objects.count - 1)
        return numbers.count - 1
    }

    /// A second number for the same bytes.
    mutating func alias(of number: Int) -> Int {
        numbers.append(numbers[number])
        return numbers.count - 1
    }

    mutating func text(_ text: String) -> Int { add(Self.header(5, text.utf8.count) + text.utf8) }

    mutating func real(_ number: Double) -> Int { add([0x23] + Self.bigEndian(Int(bitPattern: UInt(number.bitPattern)), byteCount: 8)) }

    /// The number of an object of a keyed archive.
    mutating func identifier(_ number: Int) -> Int { add([0x83] + Self.bigEndian(number, byteCount: 4)) }

    mutating func array(_ elements: [Int]) -> Int {
        add(Self.header(0xa, elements.count) + elements.flatMap { Self.bigEndian($0, byteCount: 4) })
    }

    mutating func dictionary(_ entries: [(String, Int)]) -> Int {
        let keys = entries.map { text($0.0) }
        return add(Self.header(0xd, entries.count) + (keys + entries.map(\.1)).flatMap { Self.bigEndian($0, byteCount: 4) })
    }

    func data(top: Int) -> Data {
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        for object in objects {
            offsets.append(bytes.count)
            bytes += object
        }
        let table = bytes.count
        bytes += numbers.flatMap { Self.bigEndian(offsets[$0], byteCount: 4) } + [0, 0, 0, 0, 0, 0, 4, 4]
        for number in [numbers.count, top, table] { bytes += Self.bigEndian(number, byteCount: 8) }
        return Data(bytes)
    }
}

/// A keyed archive made object by object.
struct RawArchive {
    var list = RawPropertyList()
    private var objects: [Int] = []
    var archiver = "NSKeyedArchiver"

    init(null: String = "$null") {
        _ = add(list.text(null))
    }

    /// Gives a value of the property list a number in the archive.
    mutating func add(_ value: Int) -> Int {
        objects.append(value)
        return objects.count - 1
    }

    mutating func text(_ text: String) -> Int { add(list.text(text)) }

    mutating func classNamed(_ name: String) -> Int { add(list.dictionary([("$classname", list.text(name))])) }

    /// The numbers of what a container contains, as a value of the property list.
    mutating func references(_ numbers: [Int]) -> Int { list.array(numbers.map { list.identifier($0) }) }

    mutating func container(_ classNumber: Int, _ fields: [(String, Int)]) -> Int {
        add(list.dictionary([("$class", list.identifier(classNumber))] + fields))
    }

    mutating func array(_ elements: [Int]) -> Int { container(classNamed("NSArray"), [("NS.objects", references(elements))]) }

    mutating func dictionary(_ keys: [Int], _ values: [Int]) -> Int {
        container(classNamed("NSDictionary"), [("NS.keys", references(keys)), ("NS.objects", references(values))])
    }

    /// The archive of a dictionary that holds `value` under "key".
    mutating func data(value: Int, beside extra: Int? = nil) -> Data { data(root: dictionary([text("key")], [value]), beside: extra) }

    /// `extra`: a value of the property list that is read with it and that the archive does not use.
    mutating func data(root: Int, beside extra: Int? = nil) -> Data {
        let objects = list.array(objects)
        let entries = [
            ("$archiver", list.text(archiver)), ("$top", list.dictionary([("root", list.identifier(root))])), ("$objects", objects),
        ]
        let top = list.dictionary(entries + (extra.map { [("extra", $0)] } ?? []))
        return list.data(top: top)
    }
}
