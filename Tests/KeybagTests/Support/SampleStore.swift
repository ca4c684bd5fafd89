// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTesting

@testable import Keybag

/// A fresh store's keybag, and rows in it.
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

    /// What opening answers: `.success` or why not.
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
    /// A copy of the key, to be compared.
    borrowing func copiedBytes() -> [UInt8] { secret.copiedBytes() }
}
