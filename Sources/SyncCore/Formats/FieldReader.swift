// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The reason why received bytes are not an object.
package enum FormatError: Error, Hashable, Sendable {
    /// A later version of the format, or a flag that this version does not know. The object must be kept until the program is updated.
    case newer
    /// Not what this program or a later one writes.
    case malformed
}

/// Reads the fields of a received object, and checks every count before it allocates.
struct FieldReader {
    private var reader: ByteReader
    private(set) var remaining: Int

    init(_ bytes: some Collection<UInt8>) {
        reader = ByteReader(bytes)
        remaining = bytes.count
    }

    mutating func bytes(_ count: Int) throws(FormatError) -> [UInt8] {
        guard let bytes = reader.readBytes(count) else { throw .malformed }
        remaining -= count
        return Array(bytes)
    }

    mutating func byte() throws(FormatError) -> UInt8 {
        guard let byte = reader.readByte() else { throw .malformed }
        remaining -= 1
        return byte
    }

    mutating func uint16() throws(FormatError) -> UInt16 {
        guard let number = reader.readUInt16() else { throw .malformed }
        remaining -= 2
        return number
    }

    mutating func uint32() throws(FormatError) -> UInt32 {
        guard let number = reader.readUInt32() else { throw .malformed }
        remaining -= 4
        return number
    }

    mutating func uint64() throws(FormatError) -> UInt64 {
        guard let number = reader.readUInt64() else { throw .malformed }
        remaining -= 8
        return number
    }

    /// Reads a date, which must be finite.
    mutating func seconds() throws(FormatError) -> Double {
        let seconds = Double(bitPattern: try uint64())
        guard seconds.isFinite else { throw .malformed }
        return seconds
    }

    /// Reads 0 for nil, or 1 and a date.
    mutating func optionalSeconds() throws(FormatError) -> Double? {
        switch try byte() {
        case 0: return nil
        case 1: return try seconds()
        default: throw .malformed
        }
    }

    mutating func identifier() throws(FormatError) -> Identifier128 {
        guard let bytes = reader.readBytes(Identifier128.byteCount), let identifier = Identifier128(bytes) else { throw .malformed }
        remaining -= Identifier128.byteCount
        return identifier
    }

    mutating func origin() throws(FormatError) -> Origin {
        Origin(log: LogID(try identifier()), number: try uint64(), hash: try identifier())
    }

    mutating func hash() throws(FormatError) -> ObjectHash {
        ObjectHash(prefix: try identifier(), suffix: try identifier())
    }

    /// Reads bytes with a 32-bit count in front.
    mutating func counted(atMost limit: Int) throws(FormatError) -> [UInt8] {
        let count = Int(try uint32())
        guard count <= limit else { throw .malformed }
        return try bytes(count)
    }

    /// Reads a 16-bit count of elements, each of at least `byteCount` bytes.
    mutating func count(ofElementsOf byteCount: Int, atMost limit: Int = Int(UInt16.max)) throws(FormatError) -> Int {
        let count = Int(try uint16())
        guard count <= limit, count * byteCount <= remaining else { throw .malformed }
        return count
    }

    /// Reads the magic number and the version of a format, both of which are one byte per character.
    mutating func header(_ magic: StaticString, version: UInt8) throws(FormatError) {
        let expected = String(describing: magic).utf8
        guard try bytes(expected.count).elementsEqual(expected) else { throw .malformed }
        try self.version(version)
    }

    mutating func version(_ version: UInt8) throws(FormatError) {
        let found = try byte()
        guard found == version else { throw found > version ? .newer : .malformed }
    }

    func end() throws(FormatError) {
        guard reader.isAtEnd else { throw .malformed }
    }
}

extension [UInt8] {
    mutating func append(_ magic: StaticString) {
        append(contentsOf: String(describing: magic).utf8)
    }

    mutating func append(_ hash: ObjectHash) {
        append(hash.prefix)
        append(hash.suffix)
    }

    mutating func append(_ origin: Origin) {
        append(origin.log)
        append(littleEndian: origin.number)
        append(origin.hash)
    }

    mutating func append(_ identifier: some SyncIdentifier) {
        append(identifier.value)
    }

    mutating func append(count: Int) {
        append(littleEndian: UInt16(clamping: count))
    }

    mutating func append(seconds: Double) {
        append(littleEndian: seconds.bitPattern)
    }

    /// Appends 0 for nil, or 1 and a date.
    mutating func append(optionalSeconds seconds: Double?) {
        append(seconds == nil ? 0 : 1)
        if let seconds { append(seconds: seconds) }
    }
}
