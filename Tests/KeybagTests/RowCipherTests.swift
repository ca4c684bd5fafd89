// SPDX-License-Identifier: Apache-2.0
import Contracts
import Crypto
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("The row cipher")
struct RowCipherTests {
    @Test("The row cipher satisfies the contract of item ciphers")
    func contract() throws {
        let violations = try ItemCipherContract.violations(of: SampleStore().keybag.cipher, beside: SampleStore().keybag.cipher)
        #expect(violations == [])
    }

    @Test("A value of 10 MiB is sealed and opened")
    func largeValue() throws {
        let store = try SampleStore()
        let part = Data((0..<1_024).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        var secret = Data()
        for _ in 0..<(10 << 10) { secret.append(part) }
        let opened = try store.open(store.seal(secret))
        #expect(opened.secret == secret)
    }

    @Test("Contents of different sizes have the same padded size", arguments: [0..<56, 56..<120, 4_024..<4_088])
    func sizesAreHidden(_ byteCounts: Range<Int>) throws {
        let store = try SampleStore()
        let sizes = Set(try byteCounts.map { try store.seal(Data(count: $0)).sealedSecret.count })
        #expect(sizes.count == 1)
    }

    @Test("Padding adds at most an eighth to contents of 1 KiB and more")
    func paddingOverhead() {
        for byteCount in stride(from: 1_024, through: 1 << 20, by: 97) {
            #expect(PartPadding.paddedByteCount(contentByteCount: byteCount) * 100 <= byteCount * 112)
        }
    }

    @Test("A row can be sealed only under the key that its header specifies")
    func foreignClassKey() throws {
        let store = try SampleStore()
        var header = store.header()
        header.classKeyGeneration = 2
        let failure = #expect(throws: KeychainFailure.self) {
            try store.keybag.withClassKey(for: .whenUnlocked, generation: 1) { (key: borrowing ClassKey) throws(KeychainFailure) in
                try store.keybag.cipher.seal(SampleStore.attributes, secret: nil, header: header, under: key)
            }
        }
        #expect(failure?.status == .internal)
    }

    @Test("Sealing sets the header's constraints to exactly the sealed ones")
    func claimedConstraints() throws {
        let store = try SampleStore()
        var header = store.header()
        header.constraints = [1]
        #expect(try store.seal(nil, header: header).header.constraints == nil)
    }

    @Test("A fingerprint is the SHA-1 of attributes, presence, and secret")
    func fingerprint() throws {
        let cipher = try SampleStore().keybag.cipher
        let encoded = Data(SampleStore.attributes.encoded)
        let withSecret = Insecure.SHA1.hash(data: encoded + [1] + Data("12345".utf8))
        let without = Insecure.SHA1.hash(data: encoded + [0])
        #expect(cipher.fingerprint(of: SampleStore.attributes, secret: Data("12345".utf8)) == Data(withSecret))
        #expect(cipher.fingerprint(of: SampleStore.attributes, secret: nil) == Data(without))
    }

    @Test("Too many values for one digest are refused")
    func tooManyValues() throws {
        let cipher = try SampleStore().keybag.cipher
        let values = Array(repeating: (Attribute.account, AttributeValue.string("a")), count: 256)
        #expect(throws: KeychainFailure(.parameter, "")) { try cipher.digest(of: values, in: .genericPassword) }
    }

    @Test("The digest equals that of swift-crypto's HMAC", arguments: [1, 32, 63, 64])
    func preparedKey(_ keyByteCount: Int) throws {
        let secret = try SecretBytes(randomByteCount: keyByteCount)
        let key = try HMACKey(secret)
        for messageByteCount in [0, 1, 55, 56, 63, 64, 65, 1_000] {
            let message = (0..<messageByteCount).map { UInt8(truncatingIfNeeded: $0) }
            let expected = HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(secret))
            let code = key.authenticationCode { $0.update(data: message) }
            #expect(Array(code) == Array(expected))
        }
    }

    @Test("A key longer than a block is refused")
    func longKey() throws {
        let secret = try SecretBytes(randomByteCount: 65)
        #expect(throws: KeychainFailure(.internal, "")) { _ = try HMACKey(secret) }
    }
}

@Suite("Index digest test vectors")
struct IndexDigestVectorTests {
    struct Vectors: Decodable {
        let cases: [Case]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let purpose: String
        let itemClass: UInt8
        let values: [ValueVector]
        let digest: Hexadecimal

        var testDescription: String { name }
    }

    static let vectors = Result { try TestVectors.load("index-digests-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    @Test("The vectors cover both purposes")
    func vectorsAreRead() throws {
        #expect(Set(try Self.vectors.get().cases.map(\.purpose)) == ["one value", "several values"])
    }

    @Test("Digests are the documented ones", arguments: cases)
    func digest(_ vector: Case) throws {
        let cipher = try TestVectors.load("index-digests-v1.json", as: StoreVector.self).open().cipher
        let itemClass = try #require(ItemClass(code: vector.itemClass))
        let values = try vector.values.map { try $0.parsed() }
        let digest: IndexDigest
        if vector.purpose == "one value" {
            let (attribute, value) = try #require(values.first)
            digest = try cipher.digest(of: value, for: attribute, in: itemClass)
        } else {
            digest = try cipher.digest(of: values, in: itemClass)
        }
        #expect(try digest == vector.digest.identifier())
    }
}

@Suite("Row test vectors")
struct RowVectorTests {
    struct Vectors: Decodable {
        struct Padding: Decodable {
            let content: Int
            let padded: Int
        }

        let cases: [Case]
        let paddedByteCounts: [Padding]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let expect: String
        let isIntact: Bool
        /// False if only the tag is wrong, so that sealing again gives another row.
        let isResealable: Bool?
        let firstDamagedPart: String?
        let row: RowVector
        let itemKey: Hexadecimal?
        let attributes: Hexadecimal?
        let secret: Hexadecimal?

        var testDescription: String { name }
    }

    struct RowVector: Decodable, Sendable {
        let header: RowHeaderVector
        let wrappedItemKey: Hexadecimal
        let sealedAttributes: Hexadecimal
        let sealedSecret: Hexadecimal
        let tag: Hexadecimal

        func parsed() throws -> SealedRow {
            SealedRow(
                header: try header.parsed(), wrappedItemKey: wrappedItemKey.bytes, sealedAttributes: sealedAttributes.bytes,
                sealedSecret: sealedSecret.bytes, tag: tag.bytes
            )
        }
    }

    static let vectors = Result { try TestVectors.load("row-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    private let keybag: OpenKeybag

    init() throws {
        keybag = try TestVectors.load("row-v1.json", as: StoreVector.self).open()
    }

    private func open(_ row: SealedRow, includingSecret: Bool = true) throws(KeychainFailure) -> OpenedRow {
        let cipher = keybag.cipher
        return try keybag.withClassKey(for: row.header.accessibility, generation: row.header.classKeyGeneration) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try cipher.open(row, includingSecret: includingSecret, under: key)
        }
    }

    @Test("The vectors contain valid and invalid cases")
    func vectorsAreRead() throws {
        let cases = try Self.vectors.get().cases
        #expect(cases.contains { $0.expect == "opens" } && cases.contains { $0.expect == "decode" })
    }

    @Test("A valid row opens to its content", arguments: cases.filter { $0.expect == "opens" })
    func validRow(_ vector: Case) throws {
        let opened = try open(vector.row.parsed())
        let encoded = try #require(vector.attributes)
        #expect(opened.attributes == ItemAttributes(encoded: encoded.bytes))
        #expect(opened.secret == vector.secret.map { Data($0.bytes) })
    }

    @Test(
        "Sealing with the same item key gives the same bytes",
        arguments: cases.filter { $0.expect == "opens" && $0.isResealable != false }
    )
    func resealedRow(_ vector: Case) throws {
        let row = try vector.row.parsed()
        let encoded = try #require(vector.attributes)
        let attributes = try #require(ItemAttributes(encoded: encoded.bytes))
        let itemKey = SymmetricKey(data: try #require(vector.itemKey).bytes)
        let sealed = try keybag.withClassKey(for: row.header.accessibility, generation: row.header.classKeyGeneration) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try keybag.cipher.seal(
                attributes, secret: vector.secret.map { Data($0.bytes) }, header: row.header, under: key, itemKey: itemKey
            )
        }
        #expect(sealed == row)
    }

    @Test("An invalid row is refused as damaged or newer", arguments: cases.filter { $0.expect != "opens" })
    func refusedRow(_ vector: Case) throws {
        let row = try vector.row.parsed()
        let failure = #expect(throws: KeychainFailure.self) { try open(row) }
        #expect(failure?.status == .decode)
        #expect((failure?.cause == .newerVersion) == (vector.expect == "newer"), "\(String(describing: failure))")
        if vector.firstDamagedPart == "secret" {
            let opened = try open(row, includingSecret: false)
            #expect(!opened.attributes.isEmpty && opened.secret == nil)
        }
    }

    @Test("The row tag detects alterations without a class key", arguments: cases)
    func intactRow(_ vector: Case) throws {
        let row = try vector.row.parsed()
        #expect(keybag.cipher.isIntact(row) == vector.isIntact)
    }

    @Test("Sizes are padded as documented")
    func paddedLengths() throws {
        for padding in try Self.vectors.get().paddedByteCounts {
            #expect(PartPadding.paddedByteCount(contentByteCount: padding.content) == padding.padded, "\(padding.content) bytes")
        }
    }
}
