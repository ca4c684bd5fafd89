// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import Foundation

@testable internal import Keybag
@testable internal import KeychainCore

/// Rows below their seal: the plaintext of both parts is the input's.
struct RowTarget: FuzzTarget {
    static let name = "row"

    private let cipher: RowCipher
    private let classKeyID = ClassKeyID(.whenUnlocked, generation: 1)
    private let wrappedItemKey: [UInt8]
    private let itemKey = SymmetricKey(data: Data(repeating: 3, count: 32))

    init() throws {
        cipher = try Self.cipher()
        wrappedItemKey = try KeyWrapping.wrap(itemKey, under: FixedKeys.classKey(classKeyID).secret)
    }

    static func cipher(presencePublicKey: [UInt8]? = nil) throws -> RowCipher {
        try RowCipher(
            storeID: FixedKeys.storeID, indexKey: FixedKeys.secret(4), rowTagKey: FixedKeys.secret(5), presencePublicKey: presencePublicKey,
            applicationPasswordCost: FixedKeys.cost())
    }

    static func header(constraints: [UInt8]? = nil) -> RowHeader {
        let digest = IndexDigest(high: 1, low: 2)
        return RowHeader(
            reference: PersistentReference(itemClass: .genericPassword, id: ItemID(high: 3, low: 4)), accessibility: .whenUnlocked,
            classKeyGeneration: 1, revision: Identifier128(high: 5, low: 6), isSynchronizable: false, isTombstone: false,
            serviceDigest: digest, accountDigest: digest, remainingKeyDigest: digest, accessGroupDigest: digest,
            attributeDigests: [AttributeDigest(.label, digest)], constraints: constraints)
    }

    static func seeds() -> [[UInt8]] {
        let short = ItemAttributes([.account: .string("Skroob"), .service: .string("druidia")])
        var every = ItemAttributes()
        for attribute in Attribute.allCases { every[attribute] = .string("s") }
        let kinds = ItemAttributes([.account: .data(Data([1])), .port: .number(-1), .creationDate: .date(0.5), .label: .string("é")])
        return [short, every, kinds, ItemAttributes()].flatMap { attributes in
            let encoded = attributes.encoded
            let padded = PartPadding.padded(encoded.span, isPresent: true)
            let (content, none) = (Array("12345".utf8), [UInt8]())
            let secret = PartPadding.padded(content.span, isPresent: true)
            return [
                [0, 0, 0] + .countedMany(padded) + secret,
                [3, 1, 7] + .countedMany(encoded) + Array("12345".utf8),
                [1, 0, 9] + .countedMany(encoded) + PartPadding.padded(none.span, isPresent: false),
            ]
        }
    }

    func run(_ input: [UInt8]) throws {
        var reader = InputReader(input)
        let mode = reader.byte()
        let (column, position) = (reader.byte(), reader.byte())
        // Padded here, so that most inputs reach the code below the padding too.
        let first = reader.manyBytes()
        let attributes = mode & 1 == 1 ? PartPadding.padded(first.span, isPresent: true) : first
        let last = Array(reader.rest)
        let secret = mode & 2 == 2 ? PartPadding.padded(last.span, isPresent: true) : last
        let row = try cipher.sealPlaintexts(
            attributes: attributes, secret: secret, Self.header(), itemKey, wrappedItemKey: wrappedItemKey, boundTo: wrappedItemKey)
        expect(cipher.isIntact(row), "a row as it was written counts as damaged")
        try checkOpening(of: row, attributes, secret)
        try checkDamage(of: row, column: column, position: position)
    }

    /// Opens to a value that is written as the same bytes, or fails as damaged.
    private func checkOpening(of row: SealedRow, _ attributes: [UInt8], _ secret: [UInt8]) throws {
        let classKey = try FixedKeys.classKey(classKeyID)
        let opened = attempt(failingWith: .decode) { () throws(KeychainFailure) in
            try cipher.open(row, includingSecret: true, with: ConstraintKeys(), under: classKey)
        }
        let secretAlone = attempt(failingWith: .decode) { () throws(KeychainFailure) in
            try cipher.openSecret(of: row, with: ConstraintKeys(), under: classKey)
        }
        guard let opened else { return }
        expect(
            PartPadding.padded(opened.attributes.encoded.span, isPresent: true) == attributes,
            "attributes are accepted in a form that is never written")
        let content = [UInt8](opened.secret ?? Data())
        expect(
            PartPadding.padded(content.span, isPresent: opened.secret != nil) == secret,
            "a secret is accepted in a form that is never written"
        )
        expect(secretAlone == .some(opened.secret), "the secret alone is another one")
    }

    /// Any byte of any column changed is seen, and what it belongs to does not open.
    private func checkDamage(of row: SealedRow, column: UInt8, position: UInt8) throws {
        var damaged = row
        switch column % 4 {
        case 0: Self.flip(&damaged.sealedAttributes, position)
        case 1: Self.flip(&damaged.sealedSecret, position)
        case 2: Self.flip(&damaged.wrappedItemKey, position)
        default: damaged.header.revision = Identifier128(high: 5, low: UInt64(position) << 8)
        }
        expect(!cipher.isIntact(damaged), "a damaged row counts as intact")
        let classKey = try FixedKeys.classKey(classKeyID)
        let opened = attempt(failingWith: .decode) { () throws(KeychainFailure) in
            try cipher.open(damaged, includingSecret: true, with: ConstraintKeys(), under: classKey)
        }
        expect(opened == nil, "a damaged row opens")
    }

    private static func flip(_ bytes: inout [UInt8], _ position: UInt8) {
        bytes[Int(position) % bytes.count] ^= 0x10
    }
}
