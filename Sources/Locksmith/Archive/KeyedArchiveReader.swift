// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// Reads the dictionary in a keyed archive.
///
/// Creates immutable values of the classes in ``KeyedArchive/ArchivedClass`` only. All other bytes cause ``LocksmithError/decode``. See
/// ``KeyedArchive`` for why this is not Foundation's reader.
struct KeyedArchiveReader {
    private let objects: [PropertyListNode]
    /// One instance, as on Apple platforms: Foundation for Linux gives equal instances different hashes, so two could be keys of one dictionary.
    private let null = NSNull()
    /// The objects read so far with their heights, because several objects may contain the same one.
    private var cache: [Int: (object: Any, height: Int)] = [:]
    /// The height of the object that was read last.
    private var height = 0
    /// The number of elements that may still be read: in a valid archive each element takes at least one byte.
    private var remainingElementCount: Int
    private var hashedCount = 0

    private typealias Key = KeyedArchive.Key

    /// Returns the archived dictionary.
    static func read(_ data: Data) throws(LocksmithError) -> [String: Any] {
        do throws(LocksmithError) {
            return try dictionary(in: data)
        } catch {
            // The keychain returned the value as undamaged, so the error has no status.
            throw .unreadableValue
        }
    }

    private static func dictionary(in data: Data) throws(LocksmithError) -> [String: Any] {
        guard let archive = try BinaryPropertyListReader.read(data).dictionary,
            archive[Key.archiver]?.string == KeyedArchive.name,
            let objects = archive[Key.objects]?.array, objects.first?.string == KeyedArchive.null,
            let root = archive[Key.top]?.dictionary?[Key.root]
        else { throw .decode }
        var reader = KeyedArchiveReader(objects: objects, remainingElementCount: data.count)
        guard let dictionary = try reader.object(root, depth: 0) as? [String: Any] else { throw .decode }
        return dictionary
    }

    private init(objects: [PropertyListNode], remainingElementCount: Int) {
        self.objects = objects
        self.remainingElementCount = remainingElementCount
    }

    private mutating func object(_ reference: PropertyListNode?, depth: Int) throws(LocksmithError) -> Any {
        guard let number = reference?.identifier, number > 0, number < objects.count, depth < KeyedArchive.maximumDepth else {
            throw .decode
        }
        if let found = cache[number] {
            guard depth + found.height < KeyedArchive.maximumDepth else { throw .decode }
            height = found.height
            return found.object
        }
        height = 0
        let object = try value(of: objects[number], depth: depth)
        cache[number] = (object, height)
        return object
    }

    /// Returns numbers as objects, as Apple's Foundation does, so that `as? Bool` and `as? Int` both work.
    private mutating func value(of node: PropertyListNode, depth: Int) throws(LocksmithError) -> Any {
        switch node {
        case .string(let text): return text
        case .data(let data): return data
        case .boolean(let flag): return NSNumber(value: flag)
        case .integer(let number): return NSNumber(value: number)
        case .largeInteger(let number): return NSNumber(value: number)
        case .real(let number): return NSNumber(value: number)
        case .date(let seconds): return Date(timeIntervalSinceReferenceDate: seconds)
        case .dictionary(let fields): return try instance(of: try archivedClass(of: fields), fields, depth: depth)
        case .array, .identifier: throw .decode
        }
    }

    private func archivedClass(of fields: [String: PropertyListNode]) throws(LocksmithError) -> KeyedArchive.ArchivedClass {
        guard let number = fields[Key.objectClass]?.identifier, objects.indices.contains(number),
            let name = objects[number].dictionary?[Key.className]?.string,
            let archivedClass = KeyedArchive.ArchivedClass(named: name)
        else { throw .decode }
        return archivedClass
    }

    private mutating func instance(
        of archivedClass: KeyedArchive.ArchivedClass, _ fields: [String: PropertyListNode], depth: Int
    ) throws(LocksmithError) -> Any {
        switch archivedClass {
        case .dictionary: return try dictionary(fields, depth: depth)
        case .array: return try elements(fields[Key.values], depth: depth)
        case .set:
            var set: Set<AnyHashable> = []
            for element in try elements(fields[Key.values], depth: depth) { set.insert(try hashable(element)) }
            return set
        case .date: return Date(timeIntervalSinceReferenceDate: try field(fields[Key.time]?.real))
        case .url: return try url(fields, depth: depth)
        case .uuid: return try uuid(try field(fields[Key.uuid]?.data))
        case .null: return null
        case .string: return try field(fields[Key.string]?.string)
        case .data: return try field(fields[Key.data]?.data)
        }
    }

    private func field<Value>(_ value: Value?) throws(LocksmithError) -> Value {
        guard let value else { throw .decode }
        return value
    }

    /// Returns the value as a hashable one.
    ///
    /// Rejects containers: hashing a set hashes its contents, at every level again, so a small archive of nested sets would take
    /// exponential time.
    private mutating func hashable(_ value: Any) throws(LocksmithError) -> AnyHashable {
        guard KeyedArchive.canBeHashed(value), let hashable = value as? AnyHashable else { throw .decode }
        if KeyedArchive.isHashPredictable(value) { hashedCount += 1 }
        guard hashedCount <= KeyedArchive.maximumPredictableHashCount else { throw .decode }
        return hashable
    }

    private mutating func elements(_ references: PropertyListNode?, depth: Int) throws(LocksmithError) -> [Any] {
        let references = try field(references?.array)
        guard references.count <= remainingElementCount else { throw .decode }
        remainingElementCount -= references.count
        var elements: [Any] = []
        var maximumHeight = 0
        for reference in references {
            elements.append(try object(reference, depth: depth + 1))
            maximumHeight = max(maximumHeight, height + 1)
        }
        height = maximumHeight
        return elements
    }

    /// Returns a dictionary with `String` keys, or with `AnyHashable` keys if some are not strings.
    private mutating func dictionary(_ fields: [String: PropertyListNode], depth: Int) throws(LocksmithError) -> Any {
        let keys = try elements(fields[Key.keys], depth: depth)
        let keyHeight = height
        let values = try elements(fields[Key.values], depth: depth)
        height = max(height, keyHeight)
        guard keys.count == values.count else { throw .decode }
        var byText: [String: Any] = [:]
        var byAnything: [AnyHashable: Any] = [:]
        for (key, value) in zip(keys, values) {
            if let text = key as? String { byText[text] = value }
            byAnything[try hashable(key)] = value
        }
        return byText.count == byAnything.count ? byText : byAnything
    }

    private mutating func url(_ fields: [String: PropertyListNode], depth: Int) throws(LocksmithError) -> URL {
        guard let text = try object(fields[Key.relative], depth: depth + 1) as? String else { throw .decode }
        let reference = fields[Key.base]
        height = 0
        defer { height += 1 }
        let base = reference == nil || reference?.identifier == 0 ? nil : try field(try object(reference, depth: depth + 1) as? URL)
        return try field(URL(string: text, relativeTo: base))
    }

    private func uuid(_ data: Data) throws(LocksmithError) -> UUID {
        let bytes = [UInt8](data)
        guard bytes.count == 16 else { throw .decode }
        return UUID(
            uuid: (
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
                bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
            ))
    }
}
