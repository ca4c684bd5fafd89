// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import Testing

@testable import Keybag

/// The keybag of a new store, and rows sealed with it.
struct SampleStore {
    let storeID: StoreID
    let document: KeybagDocument
    let keybag: OpenKeybag

    static let attributes = ItemAttributes([
        .account: .string("Skroob"), .service: .string("the combination"), .accessGroup: .string("com.example.spaceball"),
        .synchronizable: .number(0), .creationDate: .date(1),
    ])

    init(storeID: StoreID = .random(), deviceSecret: borrowing SecretBytes) throws {
        self.storeID = storeID
        document = try OpenKeybag.make(
            storeID: storeID, deviceSecret: deviceSecret, protector: KeybagDocument.ProtectorRecord(kind: .keyFile)
        )
        keybag = try OpenKeybag(copies: [document.encoded, document.encoded], storeID: storeID, deviceSecret: deviceSecret)
    }

    init() throws {
        try self.init(deviceSecret: SecretBytes(randomByteCount: DeviceSecret.byteCount))
    }

    func header(attributeDigests: [AttributeDigest] = []) -> RowHeader {
        RowHeader(
            reference: PersistentReference(itemClass: .genericPassword, id: .random()), accessibility: .whenUnlocked,
            classKeyGeneration: 1, revision: .random(), isSynchronizable: false, isTombstone: false, serviceDigest: .random(),
            accountDigest: .random(), remainingKeyDigest: .random(), accessGroupDigest: .random(),
            attributeDigests: attributeDigests
        )
    }

    func seal(_ secret: Data?, header: RowHeader? = nil) throws -> SealedRow {
        let header = header ?? self.header()
        return try keybag.withClassKey(for: header.accessibility, generation: header.classKeyGeneration) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try keybag.cipher.seal(Self.attributes, secret: secret, header: header, under: key)
        }
    }

    func open(_ row: SealedRow, includingSecret: Bool = true) throws(KeychainFailure) -> OpenedRow {
        let cipher = keybag.cipher
        return try keybag.withClassKey(for: row.header.accessibility, generation: row.header.classKeyGeneration) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try cipher.open(row, includingSecret: includingSecret, under: key)
        }
    }

    /// The status of opening a row.
    func statusOfOpening(_ row: SealedRow, includingSecret: Bool = true) -> KeychainStatus {
        do throws(KeychainFailure) {
            _ = try open(row, includingSecret: includingSecret)
            return .success
        } catch {
            return error.status
        }
    }
}

extension ClassKey {
    /// A copy of the key for comparisons.
    borrowing func copiedBytes() -> [UInt8] { secret.copiedBytes() }
}

/// Loads the test vectors in `TestVectors`, which another implementation of the format made.
enum TestVectors {
    static func load<Vectors: Decodable>(_ name: String, as type: Vectors.Type = Vectors.self) throws -> Vectors {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: root.appending(path: "TestVectors/\(name)")))
    }
}

/// Bytes, encoded in JSON as hexadecimal digits.
struct Hexadecimal: Decodable, Sendable {
    let bytes: [UInt8]

    init(from decoder: any Decoder) throws {
        let digits = Array(try decoder.singleValueContainer().decode(String.self).utf8)
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: digits.count, by: 2) {
            let pair = String(decoding: digits[start..<min(start + 2, digits.count)], as: UTF8.self)
            bytes.append(try #require(pair.utf8.count == 2 ? UInt8(pair, radix: 16) : nil))
        }
        self.bytes = bytes
    }

    func identifier() throws -> Identifier128 { try #require(Identifier128(bytes)) }

    func secret() throws -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
    }
}

/// The value of an attribute.
///
/// Numbers are strings, because some JSON readers lose digits of large ones.
struct ValueVector: Decodable, Sendable {
    let attribute: UInt8
    let type: String
    let value: String?
    let seconds: Double?

    func parsed() throws -> (Attribute, AttributeValue) {
        let attribute = try #require(Attribute(rawValue: attribute))
        switch type {
        case "text": return (attribute, .string(try #require(value)))
        case "number": return (attribute, .number(try #require(value.flatMap(Int64.init))))
        case "date": return (attribute, .date(try #require(seconds)))
        default:
            let data = try JSONDecoder().decode([Hexadecimal].self, from: Data("[\"\(try #require(value))\"]".utf8))
            return (attribute, .data(Data(data[0].bytes)))
        }
    }
}

/// The identifier and the keys of the store of a set of vectors.
struct StoreVector: Decodable, Sendable {
    let storeID: Hexadecimal
    let deviceSecret: Hexadecimal
    let keybag: Hexadecimal

    func open() throws -> OpenKeybag {
        try OpenKeybag(copies: [keybag.bytes, keybag.bytes], storeID: storeID.identifier(), deviceSecret: deviceSecret.secret())
    }
}
