// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials
package import KeychainCore

/// Writes the fields of a message's body.
///
/// A value that may be absent is preceded by a byte, 0 or 1. Bytes and text are preceded by their byte count in four bytes.
package struct MessageWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func write(_ byte: UInt8) {
        makeRoom(1)
        bytes.append(byte)
    }

    package mutating func write(_ flag: Bool) { write(flag ? 1 : 0 as UInt8) }

    package mutating func write(_ number: UInt32) {
        makeRoom(4)
        bytes.append(littleEndian: number)
    }

    package mutating func write(_ number: Int32) { write(UInt32(bitPattern: number)) }

    package mutating func write(_ number: UInt64) {
        makeRoom(8)
        bytes.append(littleEndian: number)
    }

    package mutating func write(_ identifier: Identifier128) {
        makeRoom(Identifier128.byteCount)
        bytes.append(identifier)
    }

    package mutating func write(_ field: [UInt8]) {
        makeRoom(4 + field.count)
        bytes.append(lengthPrefixed: field)
    }

    /// Writes fields that were encoded before.
    mutating func writeEncoded(_ fields: [UInt8]) {
        makeRoom(fields.count)
        bytes.append(contentsOf: fields)
    }

    package mutating func write(_ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            makeRoom(4 + utf8.count)
            bytes.append(littleEndian: UInt32(utf8.count))
            // The bytes are copied within the closure.
            unsafe bytes.append(contentsOf: utf8)
        }
    }

    package mutating func write(_ data: Data) {
        makeRoom(4 + data.count)
        bytes.append(littleEndian: UInt32(data.count))
        bytes.append(contentsOf: data)
    }

    package mutating func write(_ secret: borrowing SecretBytes) {
        makeRoom(4 + secret.byteCount)
        bytes.append(littleEndian: UInt32(secret.byteCount))
        // The bytes are copied within the closure.
        unsafe secret.withBytes { unsafe bytes.append(contentsOf: $0) }
    }

    package mutating func write<Value>(ifPresent value: Value?, _ body: (inout MessageWriter, Value) -> Void) {
        write(value != nil)
        if let value { body(&self, value) }
    }

    /// Makes room for so many further bytes; if they have to be moved for it, wipes the place where they were.
    package mutating func makeRoom(_ byteCount: Int) {
        guard bytes.capacity - bytes.count < byteCount else { return }
        var larger: [UInt8] = []
        larger.reserveCapacity(max(512, 2 * bytes.capacity, bytes.count + byteCount))
        larger += bytes
        bytes.wipe()
        bytes = larger
    }
}

/// Reads the fields of a message's body, each checked; the encoding of a value is unique.
package struct MessageReader {
    private var reader: ByteReader

    package init(_ bytes: [UInt8]) {
        reader = ByteReader(bytes)
    }

    package mutating func readByte() throws(MalformedMessage) -> UInt8 { try required(reader.readByte()) }
    package mutating func readUInt32() throws(MalformedMessage) -> UInt32 { try required(reader.readUInt32()) }
    package mutating func readInt32() throws(MalformedMessage) -> Int32 { Int32(bitPattern: try readUInt32()) }
    package mutating func readUInt64() throws(MalformedMessage) -> UInt64 { try required(reader.readUInt64()) }

    package mutating func readFlag() throws(MalformedMessage) -> Bool {
        let byte = try readByte()
        guard byte <= 1 else { throw MalformedMessage() }
        return byte == 1
    }

    package mutating func readIdentifier() throws(MalformedMessage) -> Identifier128 {
        try required(reader.readBytes(Identifier128.byteCount).flatMap { Identifier128($0) })
    }

    package mutating func readBytes() throws(MalformedMessage) -> ArraySlice<UInt8> { try required(reader.readLengthPrefixed()) }

    package mutating func readData() throws(MalformedMessage) -> Data { Data(try readBytes()) }

    /// Reads the value of an item, which keychaind wipes after the call.
    package mutating func readWipeableData() throws(MalformedMessage) -> Data {
        // The bytes are copied within the closure.
        unsafe try readBytes().withUnsafeBytes { unsafe Data(onHeap: $0) }
    }

    package mutating func readText() throws(MalformedMessage) -> String {
        try required(String(validating: try readBytes(), as: UTF8.self))
    }

    /// Reads a secret; nil if it is empty.
    package mutating func readSecret() throws(MalformedMessage) -> SharedSecretBytes? {
        let bytes = try readBytes()
        guard !bytes.isEmpty else { return nil }
        do throws(KeychainFailure) {
            let secret = try unsafe SecretBytes(byteCount: bytes.count) { buffer in
                // As many bytes as the buffer has.
                unsafe buffer.copyBytes(from: bytes)
            }
            return SharedSecretBytes(secret)
        } catch {
            throw MalformedMessage()
        }
    }

    package mutating func readIfPresent<Value>(
        _ body: (inout MessageReader) throws(MalformedMessage) -> Value
    ) throws(MalformedMessage) -> Value? {
        try readFlag() ? try body(&self) : nil
    }

    /// Reads a list that is preceded by its count.
    package mutating func readList<Value>(
        _ body: (inout MessageReader) throws(MalformedMessage) -> Value
    ) throws(MalformedMessage) -> [Value] {
        let count = try readUInt32()
        var values: [Value] = []
        for _ in 0..<count { values.append(try body(&self)) }
        return values
    }

    /// Throws unless everything was read.
    package func finish() throws(MalformedMessage) {
        guard reader.isAtEnd else { throw MalformedMessage() }
    }

    package func required<Value>(_ value: Value?) throws(MalformedMessage) -> Value {
        guard let value else { throw MalformedMessage() }
        return value
    }
}
