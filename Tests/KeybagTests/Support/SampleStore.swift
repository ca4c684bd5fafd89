// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainTestSupport

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

extension Hexadecimal {
    func secret() throws -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
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
