// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import Foundation
internal import FoundationEssentials
package import KeychainCore

/// The rules that every `ItemCipher` follows, as checks.
package struct ItemCipherContract {
    private let cipher: any ItemCipher
    private let foreignCipher: any ItemCipher
    private var findings = ContractFindings()

    /// Checks `cipher`, with the cipher of another store for comparison.
    ///
    /// - Returns: A sentence for each violation; empty if there is none.
    /// - Throws: A failure to create keys for the checks.
    package static func violations(
        of cipher: any ItemCipher, beside foreignCipher: any ItemCipher
    ) throws(KeychainFailure) -> [String] {
        var contract = ItemCipherContract(cipher: cipher, foreignCipher: foreignCipher)
        let key = try ClassKey(accessibility: .whenUnlocked, generation: 1, secret: SecretBytes(randomByteCount: ClassKey.byteCount))
        let otherKey = try ClassKey(accessibility: .whenUnlocked, generation: 1, secret: SecretBytes(randomByteCount: ClassKey.byteCount))
        try contract.checkRoundTrips(under: key)
        try contract.checkRefusals(under: key, otherKey: otherKey)
        try contract.checkConcealment(under: key)
        try contract.checkDigests()
        contract.checkFingerprints()
        return contract.findings.violations
    }

    private init(cipher: any ItemCipher, foreignCipher: any ItemCipher) {
        self.cipher = cipher
        self.foreignCipher = foreignCipher
    }

    private static let attributes = ItemAttributes([
        .account: .string("an account"), .service: .data(Data([0xFF, 0])), .synchronizable: .number(0), .creationDate: .date(0.25),
    ])

    private mutating func expect(_ isKept: Bool, _ violation: String) { findings.expect(isKept, violation) }

    private func header(revision: Identifier128 = .random()) throws(KeychainFailure) -> RowHeader {
        let digest = try cipher.digest(of: .string("an account"), for: .account, in: .genericPassword)
        return RowHeader(
            reference: PersistentReference(itemClass: .genericPassword, id: .random()), accessibility: .whenUnlocked,
            classKeyGeneration: 1, revision: revision, isSynchronizable: false, isTombstone: false, serviceDigest: digest,
            accountDigest: digest, remainingKeyDigest: digest, accessGroupDigest: digest, attributeDigests: []
        )
    }

    private mutating func checkRoundTrips(under key: borrowing ClassKey) throws(KeychainFailure) {
        let secrets: [Data?] = [
            nil, Data(), Data([0]), Data("12345".utf8), Data(repeating: 0, count: 64), Data(repeating: 7, count: 100_000),
        ]
        for secret in secrets {
            let name = secret.map { "a secret of \($0.count) bytes" } ?? "no secret"
            var row = try cipher.seal(Self.attributes, secret: secret, header: header(), under: key)
            let opened = try cipher.open(row, includingSecret: true, under: key)
            expect(opened.attributes == Self.attributes, "\(name): the attributes differ after opening")
            expect(opened.secret == secret, "\(name): the secret differs after opening")
            expect((opened.secret?.startIndex ?? 0) == 0, "\(name): the indices of the secret do not start at 0")
            expect(cipher.isIntact(row), "\(name): a fresh row is not intact")
            row.sealedSecret = []
            let withoutSecret = try cipher.open(row, includingSecret: false, under: key)
            expect(withoutSecret.attributes == Self.attributes, "\(name): the attributes do not open without the sealed secret")
            expect(withoutSecret.secret == nil, "\(name): a secret is returned that was not requested")
            let account = try cipher.open(row, includingSecret: false, keeping: .only(.account), with: ConstraintKeys(), under: key)
            let requested = Self.attributes.entries.filter { $0.attribute == .account }
            expect(account.attributes.entries == requested, "\(name): attributes are returned that were not requested")
        }
    }

    private mutating func checkRefusals(
        under key: borrowing ClassKey, otherKey: borrowing ClassKey
    ) throws(KeychainFailure) {
        let row = try cipher.seal(Self.attributes, secret: Data("12345".utf8), header: header(), under: key)
        let other = try cipher.seal(Self.attributes, secret: Data("54321".utf8), header: header(), under: key)
        let changes: [(String, (inout SealedRow) -> Void)] = [
            ("wrapped key altered", { $0.wrappedItemKey[0] ^= 1 }),
            ("attributes altered", { $0.sealedAttributes[0] ^= 1 }),
            ("secret altered", { $0.sealedSecret[0] ^= 1 }),
            ("attributes emptied", { $0.sealedAttributes = [] }),
            ("secret emptied", { $0.sealedSecret = [] }),
            ("attributes of another row", { $0.sealedAttributes = other.sealedAttributes }),
            ("secret of another row", { $0.sealedSecret = other.sealedSecret }),
            ("parts swapped", { swap(&$0.sealedAttributes, &$0.sealedSecret) }),
            ("item changed", { $0.header.reference = other.header.reference }),
            ("revision changed", { $0.header.revision = other.header.revision }),
            ("made synchronizable", { $0.header.isSynchronizable = true }),
            ("made a tombstone", { $0.header.isTombstone = true }),
            ("digest changed", { $0.header.accountDigest = .random() }),
            ("format version changed", { $0.header.formatVersion += 1 }),
        ]
        for (name, change) in changes {
            var changed = row
            change(&changed)
            expect(status(of: cipher, opening: changed, under: key) == .decode, "\(name): opens, or fails with another status")
            expect(!cipher.isIntact(changed), "\(name): counts as intact")
        }
        expect(status(of: cipher, opening: row, under: otherKey) == .decode, "opens under another class key")
        expect(status(of: foreignCipher, opening: row, under: key) == .decode, "opens in another store")
        expect(!foreignCipher.isIntact(row), "counts as intact in another store")
    }

    private func status(of cipher: any ItemCipher, opening row: SealedRow, under key: borrowing ClassKey) -> KeychainStatus {
        do throws(KeychainFailure) {
            _ = try cipher.open(row, includingSecret: true, under: key)
            return .success
        } catch {
            return error.status
        }
    }

    private mutating func checkConcealment(under key: borrowing ClassKey) throws(KeychainFailure) {
        let header = try header()
        let row = try cipher.seal(Self.attributes, secret: nil, header: header, under: key)
        let again = try cipher.seal(Self.attributes, secret: nil, header: header, under: key)
        expect(row.wrappedItemKey != again.wrappedItemKey, "two rows share an item key")
        expect(row.sealedAttributes != again.sealedAttributes, "equal attributes have equal ciphertexts")
        for secret in [Data(), Data("12345".utf8)] {
            let other = try cipher.seal(Self.attributes, secret: secret, header: header, under: key)
            expect(
                other.sealedSecret.count == row.sealedSecret.count,
                "the size distinguishes a secret of \(secret.count) bytes from no secret")
        }
    }

    private mutating func checkDigests() throws(KeychainFailure) {
        let text = try cipher.digest(of: .string("a"), for: .account, in: .genericPassword)
        expect(try cipher.digest(of: .string("a"), for: .account, in: .genericPassword) == text, "equal values have different digests")
        expect(
            try cipher.digest(of: .data(Data("a".utf8)), for: .account, in: .genericPassword) == text,
            "equal text and data have different digests")
        expect(try cipher.digest(of: .string("b"), for: .account, in: .genericPassword) != text, "different values share a digest")
        expect(try cipher.digest(of: .string("a"), for: .service, in: .genericPassword) != text, "different attributes share a digest")
        expect(try cipher.digest(of: .string("a"), for: .account, in: .internetPassword) != text, "different classes share a digest")
        expect(try foreignCipher.digest(of: .string("a"), for: .account, in: .genericPassword) != text, "different stores share a digest")
        expect(
            try cipher.digest(of: .number(1), for: .port, in: .internetPassword)
                != cipher.digest(of: .string("\u{1}\0\0\0"), for: .port, in: .internetPassword),
            "a number and a text share a digest in an attribute compared as a number"
        )
        let several = try cipher.digest(of: [(.account, .string("a"))], in: .genericPassword)
        expect(several != text, "a value and a list with that value share a digest")
        expect(
            try cipher.digest(of: [(.account, .string("ab")), (.service, .string("c"))], in: .genericPassword)
                != cipher.digest(of: [(.account, .string("a")), (.service, .string("bc"))], in: .genericPassword),
            "lists with different boundaries between values share a digest"
        )
        expect(
            try cipher.digest(of: [(.account, .string("")), (.service, .string(""))], in: .genericPassword)
                != cipher.digest(of: [(.service, .string("")), (.account, .string(""))], in: .genericPassword),
            "lists in a different order share a digest"
        )
    }

    private mutating func checkFingerprints() {
        let none = cipher.fingerprint(of: Self.attributes, secret: nil)
        expect(none.count == 20, "a fingerprint has \(none.count) bytes")
        expect(cipher.fingerprint(of: Self.attributes, secret: nil) == none, "equal items have different fingerprints")
        expect(cipher.fingerprint(of: Self.attributes, secret: Data()) != none, "no secret and an empty secret share a fingerprint")
        expect(cipher.fingerprint(of: ItemAttributes(), secret: nil) != none, "different attributes share a fingerprint")
    }
}

/// Rows without access control, which need no key but the class key.
extension ItemCipher {
    package func seal(
        _ attributes: ItemAttributes, secret: Data?, header: RowHeader, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> SealedRow {
        try seal(attributes, secret: secret, header: header, constraint: nil, with: ConstraintKeys(), under: classKey)
    }

    package func open(
        _ row: SealedRow, includingSecret: Bool, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> OpenedRow {
        try open(row, includingSecret: includingSecret, with: ConstraintKeys(), under: classKey)
    }

    package func openSecret(of row: SealedRow, under classKey: borrowing ClassKey) throws(KeychainFailure) -> Data? {
        try openSecret(of: row, with: ConstraintKeys(), under: classKey)
    }
}
#endif
