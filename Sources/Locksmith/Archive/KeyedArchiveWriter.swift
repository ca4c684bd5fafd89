// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// Writes a dictionary as a keyed archive.
struct KeyedArchiveWriter {
    private var objects: [PropertyListNode] = [.string(KeyedArchive.null)]
    private var classNumbers: [KeyedArchive.ArchivedClass: Int] = [:]
    private var hashedCount = 0

    private typealias Key = KeyedArchive.Key

    /// Returns the archive of a dictionary.
    ///
    /// - Throws: ``LocksmithError/unarchivable`` with the key of the first value that cannot be archived.
    static func write(_ dictionary: [String: Any]) throws(LocksmithError) -> Data {
        var writer = KeyedArchiveWriter()
        let root = try writer.add(dictionary, path: "", depth: 0)
        return BinaryPropertyListWriter.write(
            .dictionary([
                Key.archiver: .string(KeyedArchive.name),
                Key.version: .integer(KeyedArchive.version),
                Key.top: .dictionary([Key.root: root]),
                Key.objects: .array(writer.objects),
            ]))
    }

    /// Adds a value and its contents.
    ///
    /// The casts match Swift types, Foundation types, and optionals of both.
    ///
    /// - Returns: The index of the object.
    private mutating func add(_ value: Any, path: String, depth: Int) throws(LocksmithError) -> PropertyListNode {
        guard depth < KeyedArchive.maximumDepth, objects.count < KeyedArchive.maximumObjectCount else {
            throw .unarchivable(key: path)
        }
        switch value {
        case let text as String: return append(.string(text))
        // Before Foundation classes: a cast of a container to one bridges all of its contents, at every level again.
        case let elements as [Any]: return try append(.array, [Key.values: addElements(elements, path: path, depth: depth)])
        case let dictionary as [AnyHashable: Any]: return try addEntries(of: dictionary, path: path, depth: depth)
        case let elements as Set<AnyHashable>:
            let elements = elements.map(\.base)
            guard areDistinguishable(elements) else { throw .unarchivable(key: path) }
            return try append(.set, [Key.values: addElements(elements, path: path, depth: depth)])
        case let number as NSNumber: return append(try node(of: number, path: path))
        case let data as Data: return append(.data(data))
        case let date as Date: return append(.date, [Key.time: .real(date.timeIntervalSinceReferenceDate)])
        case let url as URL: return try add(url, path: path, depth: depth)
        case let uuid as UUID:
            let bytes = uuid.uuid
            // The bytes are copied while they are valid.
            return append(.uuid, [Key.uuid: .data(unsafe withUnsafeBytes(of: bytes) { unsafe Data($0) })])
        case is NSNull: return append(.null, [:])
        default: throw .unarchivable(key: path)
        }
    }

    private mutating func addElements(_ elements: [Any], path: String, depth: Int) throws(LocksmithError) -> PropertyListNode {
        var numbers: [PropertyListNode] = []
        for (index, element) in elements.enumerated() {
            numbers.append(try add(element, path: "\(path)[\(index)]", depth: depth + 1))
        }
        return .array(numbers)
    }

    private mutating func addEntries(of dictionary: [AnyHashable: Any], path: String, depth: Int) throws(LocksmithError) -> PropertyListNode
    {
        // Sorted, so that the error always names the same one of several values that cannot be archived.
        let pairs = dictionary.map { (name: Self.name(of: $0.key.base), key: $0.key.base, value: $0.value) }.sorted { $0.name < $1.name }
        guard areDistinguishable(pairs.map(\.key)) else { throw .unarchivable(key: path) }
        var keys: [PropertyListNode] = []
        var values: [PropertyListNode] = []
        for pair in pairs {
            let path = path.isEmpty ? pair.name : "\(path).\(pair.name)"
            keys.append(try add(pair.key, path: path, depth: depth + 1))
            values.append(try add(pair.value, path: path, depth: depth + 1))
        }
        return append(.dictionary, [Key.keys: .array(keys), Key.values: .array(values)])
    }

    /// Returns the name of a key for an error.
    ///
    /// Does not use the descriptions of other types: that of a date that is not a number terminates the program.
    private static func name(of key: Any) -> String {
        switch key {
        case let text as String: text
        case let number as NSNumber: number.stringValue
        default: "a key of type \(type(of: key))"
        }
    }

    /// Returns whether a reader can restore these keys or set elements: it would reject some and could not distinguish others.
    private mutating func areDistinguishable(_ values: [Any]) -> Bool {
        hashedCount += values.count(where: KeyedArchive.isHashPredictable)
        guard hashedCount <= KeyedArchive.maximumPredictableHashCount else { return false }
        var numbers: Set<NSNumber> = []
        return values.allSatisfy { value in
            guard KeyedArchive.canBeHashed(value) else { return false }
            // `true` and 1 are two keys in Swift, and one in an archive.
            return (value as? NSNumber).map { numbers.insert($0).inserted } ?? true
        }
    }

    private mutating func add(_ url: URL, path: String, depth: Int) throws(LocksmithError) -> PropertyListNode {
        // The parts of a URL are one level deeper, as the reader counts them.
        guard depth + 1 < KeyedArchive.maximumDepth else { throw .unarchivable(key: path) }
        var base = PropertyListNode.identifier(0)
        if let baseURL = url.baseURL { base = try add(baseURL, path: path, depth: depth + 1) }
        let relative = append(.string(url.relativeString))
        return append(.url, [Key.base: base, Key.relative: relative])
    }

    private func node(of number: NSNumber, path: String) throws(LocksmithError) -> PropertyListNode {
        // The archive would reduce its precision.
        guard !(number is NSDecimalNumber) else { throw .unarchivable(key: path) }
        // Foundation has one object for each Boolean, and numbers are other objects.
        if number === NSNumber(value: true) { return .boolean(true) }
        if number === NSNumber(value: false) { return .boolean(false) }
        // The type code is in static memory.
        let type = unsafe UInt8(bitPattern: number.objCType.pointee)
        if type == UInt8(ascii: "d") || type == UInt8(ascii: "f") { return .real(number.doubleValue) }
        if type == UInt8(ascii: "Q"), number.uint64Value > Int64.max { return .largeInteger(number.uint64Value) }
        return .integer(number.int64Value)
    }

    // MARK: Objects

    private mutating func append(_ node: PropertyListNode) -> PropertyListNode {
        objects.append(node)
        return .identifier(objects.count - 1)
    }

    private mutating func append(_ archivedClass: KeyedArchive.ArchivedClass, _ fields: [String: PropertyListNode]) -> PropertyListNode {
        var fields = fields
        fields[Key.objectClass] = .identifier(number(of: archivedClass))
        return append(.dictionary(fields))
    }

    private mutating func number(of archivedClass: KeyedArchive.ArchivedClass) -> Int {
        if let number = classNumbers[archivedClass] { return number }
        let name = archivedClass.rawValue
        objects.append(
            .dictionary([Key.className: .string(name), Key.classNames: .array([.string(name), .string("NSObject")])]))
        classNumbers[archivedClass] = objects.count - 1
        return objects.count - 1
    }
}
