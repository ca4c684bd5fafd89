// SPDX-License-Identifier: Apache-2.0
internal import Foundation

@testable internal import Locksmith

/// Locksmith's archives: arbitrary data in place of one.
struct ArchiveTarget: FuzzTarget {
    static let name = "archive"

    private enum Mode: UInt8, CaseIterable {
        /// The bytes as they are.
        case raw
        /// Objects of a property list, with a table and a trailer that are right.
        case objects
        /// Objects of an archive, in a property list that is right.
        case graph
    }

    static func seeds() throws -> [[UInt8]] {
        let dictionaries: [[String: Any]] = [
            ["Skroob": "12345"], [:],
            [
                "text": "é", "data": Data([1, 2, 3]), "true": true, "number": -1, "large": UInt64.max, "real": 0.5,
                "date": Date(timeIntervalSinceReferenceDate: 1),
                "url": URL(string: "b?c#d", relativeTo: URL(string: "https://druidia.example/a/")) as Any, "null": NSNull(),
                "uuid": UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)), "set": Set<AnyHashable>(["a", 1]),
                "array": ["a", ["b": ["c"]]], "any": [1: "one"] as [AnyHashable: Any],
            ],
        ]
        let archives = try dictionaries.map { [UInt8](try KeyedArchiveWriter.write($0)) }
        let strings = ["$archiver", "NSKeyedArchiver", "$top", "root", "$objects", "$null"].map {
            [0x50 | UInt8($0.utf8.count)] + Array($0.utf8)
        }
        let objects: [[UInt8]] =
            [[0xd3, 1, 3, 5, 2, 7, 8]] + strings.prefix(3) + [[0x51, 0x61], [0x58] + "$objects".utf8, [0x55, 0x61], [0xd1, 4, 9]]
        return archives.map { [Mode.raw.rawValue] + $0 } + [
            [Mode.objects.rawValue] + objects.flatMap { [UInt8].counted($0) },
            [Mode.graph.rawValue, 8, 0, 1, 2, 1, 3, 0, 1, 65, 8, 1, 1, 2, 0, 1, 1],
            [Mode.graph.rawValue, 8, 0, 2, 2, 3, 2, 4, 5, 0, 1, 65, 0, 1, 66, 8, 2, 1, 2, 8, 4, 2, 3, 0, 0, 1, 67],
        ]
    }

    func run(_ input: [UInt8]) throws {
        var reader = InputReader(input)
        let archive =
            switch Mode.allCases[reader.choice(below: Mode.allCases.count)] {
            case .raw: Data(reader.rest)
            case .objects: Data(Self.propertyList(&reader))
            case .graph: Self.archive(&reader)
            }
        guard let dictionary = Self.read(archive) else { return }
        // An archive survives writing and reading.
        guard let written = Self.write(dictionary) else { return }
        guard let again = Self.read(written) else { return expect(false, "a written archive cannot be read") }
        expect(again.count == dictionary.count, "an entry is lost")
        expect(Set(again.keys.map { Array($0.utf8) }) == Set(dictionary.keys.map { Array($0.utf8) }), "a name is changed")
        expect(Self.write(again)?.count == written.count, "an archive changes when it is written and read")
    }

    private static func read(_ data: Data) -> [String: Any]? {
        func isExpected(_ error: LocksmithError) -> Bool { if case .decode = error { true } else { false } }
        return attempt(expecting: isExpected) { () throws(LocksmithError) in try KeyedArchiveReader.read(data) }
    }

    private static func write(_ dictionary: [String: Any]) -> Data? {
        func isExpected(_ error: LocksmithError) -> Bool { if case .unarchivable = error { true } else { false } }
        return attempt(expecting: isExpected) { () throws(LocksmithError) in try KeyedArchiveWriter.write(dictionary) }
    }

    /// A property list of the input's objects, each behind its count; the first is the outermost.
    private static func propertyList(_ reader: inout InputReader) -> [UInt8] {
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        while !reader.isAtEnd, offsets.count < 256 {
            offsets.append(bytes.count)
            bytes += reader.bytes()
        }
        let table = bytes.count
        for offset in offsets { bytes += [UInt8(offset >> 8 & 0xFF), UInt8(offset & 0xFF)] }
        bytes += [0, 0, 0, 0, 0, 0, 2, 1]
        for number in [offsets.count, 0, table] { bytes += (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) } }
        return bytes
    }

    private static let classes: [KeyedArchive.ArchivedClass] = [.dictionary, .array, .set, .date, .url, .uuid, .null, .string, .data]

    /// Makes an archive whose objects and references the input determines.
    private static func archive(_ reader: inout InputReader) -> Data {
        var objects: [PropertyListNode] = [.string(KeyedArchive.null)]
        // The classes are behind the objects, which are so many at the most.
        let classStart = 64
        while !reader.isAtEnd, objects.count < classStart { objects.append(node(&reader, classStart)) }
        while objects.count < classStart { objects.append(.boolean(true)) }
        for archivedClass in classes { objects.append(.dictionary([KeyedArchive.Key.className: .string(archivedClass.rawValue)])) }
        return BinaryPropertyListWriter.write(
            .dictionary([
                KeyedArchive.Key.archiver: .string(KeyedArchive.name),
                KeyedArchive.Key.top: .dictionary([KeyedArchive.Key.root: .identifier(1)]),
                KeyedArchive.Key.objects: .array(objects),
            ]))
    }

    private static func node(_ reader: inout InputReader, _ classStart: Int) -> PropertyListNode {
        switch reader.choice(below: 9) {
        case 0: .string(reader.text())
        case 1: .data(Data(reader.bytes()))
        case 2: .integer(Int64(bitPattern: reader.number()))
        case 3: .largeInteger(reader.number())
        case 4: .real(Double(bitPattern: reader.number()))
        case 5: .date(Double(bitPattern: reader.number()))
        case 6: .boolean(reader.flag())
        case 7: .identifier(Int(reader.byte()))
        default: instance(&reader, classStart)
        }
    }

    private static func instance(_ reader: inout InputReader, _ classStart: Int) -> PropertyListNode {
        let number = reader.choice(below: classes.count)
        var fields: [String: PropertyListNode] = [KeyedArchive.Key.objectClass: .identifier(classStart + number)]
        func references() -> PropertyListNode { .array((0..<reader.choice(below: 16)).map { _ in .identifier(Int(reader.byte())) }) }
        switch classes[number] {
        case .dictionary:
            let count = reader.choice(below: 16)
            fields[KeyedArchive.Key.keys] = .array((0..<count).map { _ in .identifier(Int(reader.byte())) })
            fields[KeyedArchive.Key.values] = .array((0..<count).map { _ in .identifier(Int(reader.byte())) })
        case .array, .set: fields[KeyedArchive.Key.values] = references()
        case .date: fields[KeyedArchive.Key.time] = .real(Double(bitPattern: reader.number()))
        case .url:
            fields[KeyedArchive.Key.base] = .identifier(Int(reader.byte()))
            fields[KeyedArchive.Key.relative] = .identifier(Int(reader.byte()))
        case .uuid: fields[KeyedArchive.Key.uuid] = .data(Data(reader.bytes()))
        case .null: break
        case .string: fields[KeyedArchive.Key.string] = .string(reader.text())
        case .data: fields[KeyedArchive.Key.data] = .data(Data(reader.bytes()))
        }
        return .dictionary(fields)
    }
}
