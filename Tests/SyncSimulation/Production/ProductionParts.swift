// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import Keybag
internal import KeychainCore

/// The store and the cryptography of the product.
struct ProductionParts: SimulatedParts {
    private let cryptography = CircleCryptography()
    var cipher: any CircleCipher { cryptography }

    func keys(seed: [UInt8]) throws(KeychainFailure) -> any CircleDeviceKeys {
        func key(_ number: UInt8) throws(KeychainFailure) -> SharedSecretBytes {
            try FakeCipher.secret(cryptography.hash([number] + seed).bytes)
        }
        return try DeviceKeys(signingKey: key(0), whenUnlockedBoxKey: key(1), afterFirstUnlockBoxKey: key(2))
    }

    func makeDisk() throws -> any SimulatedDisk { try StoreDisk() }

    func opened(_ sealed: SealedContent, header: [UInt8], under key: () -> SharedSecretBytes?) throws(KeychainFailure) -> [UInt8]? {
        guard let key = key() else { return nil }
        return try cryptography.open(sealed, header: header, under: key)
    }

    func encoded(_ content: SimulatedContent) -> SyncContent {
        SyncContent(
            itemClass: .genericPassword, accessibility: content.accessibility, attributes: Self.attributes(of: content).encoded,
            secret: Self.secret(of: content.value))
    }

    func decoded(_ content: SyncContent) -> SimulatedContent? {
        ItemAttributes(encoded: content.attributes).flatMap { Self.content($0, content.accessibility, content.secret) }
    }

    /// Returns the attributes of a stored item, without `sha1`.
    private static func attributes(of content: SimulatedContent) -> ItemAttributes {
        var attributes = primaryKey(of: content.name)
        attributes[.accessGroup] = .string(StoreDisk.entitlements.applicationIdentifier)
        attributes[.multiUser] = PrimaryKey.defaultValue(of: .multiUser)
        attributes[.accessible] = .string(content.accessibility.rawValue)
        attributes[.creationDate] = .date(content.date)
        attributes[.modificationDate] = .date(content.date)
        attributes[.synchronizable] = .number(1)
        attributes[.tombstone] = .number(0)
        return attributes
    }

    /// The attributes by which programs name an item.
    static func primaryKey(of name: Int) -> ItemAttributes {
        ItemAttributes([.account: .string(String(name)), .service: .string("storm")])
    }

    static func content(
        _ attributes: ItemAttributes, _ accessibility: ItemAccessibility, _ secret: [UInt8]?
    ) -> SimulatedContent? {
        guard let name = attributes.text(.account).flatMap({ Int($0) }), let date = attributes.seconds(.modificationDate),
            let secret
        else { return nil }
        var reader = ByteReader(secret)
        return reader.readUInt64().map { SimulatedContent(name: name, accessibility: accessibility, date: date, value: $0) }
    }

    static func secret(of value: UInt64) -> [UInt8] {
        var secret: [UInt8] = []
        secret.append(littleEndian: value)
        return secret
    }
}
