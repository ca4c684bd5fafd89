// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation
import KeychainCore
import Testing

@testable import Keybag

@Suite("Backup test vectors")
struct BackupVectorTests {
    struct Vectors: Decodable {
        let id: Hexadecimal
        let salt: Hexadecimal
        let creationDate: Double
        let cases: [Case]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        struct Item: Decodable, Sendable {
            let reference: Hexadecimal
            let accessibility: UInt8
            let attributes: Hexadecimal
            let secretDigest: Hexadecimal?
        }

        struct LeftBehind: Decodable, Sendable {
            let thisDeviceOnly: Int
            let constrained: Int
            let unreadable: Int
        }

        let name: String
        let expect: String
        let password: String
        let file: Hexadecimal
        let items: [Item]?
        let leftBehind: LeftBehind?

        var testDescription: String { name }
    }

    static let vectors = Result { try TestVectors.load("backup-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    @Test("The vectors are read, valid and refused ones")
    func vectorsAreRead() throws {
        let expectations = Set(try Self.vectors.get().cases.map(\.expect))
        #expect(expectations == ["opens", "decode", "notAvailable", "authFailed"])
    }

    @Test("A backup that another program made gives its items", arguments: cases.filter { $0.expect == "opens" })
    func opens(_ vector: Case) throws {
        let file = BackupFile(vector.file.bytes)
        #expect(try file.header.creationDate == Self.vectors.get().creationDate)
        let contents = try file.contents(password: vector.password)
        let expected = try #require(vector.items)
        #expect(contents.items.map { Array($0.reference.data) } == expected.map(\.reference.bytes))
        #expect(contents.items.map(\.accessibility.code) == expected.map(\.accessibility))
        #expect(contents.items.map(\.attributes.encoded) == expected.map(\.attributes.bytes))
        #expect(contents.items.map { $0.secret.map { Array(SHA256.hash(data: $0)) } } == expected.map { $0.secretDigest?.bytes })
        let leftBehind = try #require(vector.leftBehind)
        #expect(contents.summary.savedCount == expected.count)
        #expect(contents.summary.thisDeviceOnlyCount == leftBehind.thisDeviceOnly)
        #expect(contents.summary.constrainedCount == leftBehind.constrained)
        #expect(contents.summary.unreadableCount == leftBehind.unreadable)
    }

    @Test("Writing what was read gives the same bytes", arguments: cases.filter { $0.expect == "opens" })
    func rewritten(_ vector: Case) throws {
        let vectors = try Self.vectors.get()
        let original = BackupFile(vector.file.bytes)
        let contents = try original.contents(password: vector.password)
        let copy = try BackupFile(
            contents.items, leftBehind: contents.summary, id: vectors.id.identifier(),
            record: PasscodeRecord(salt: vectors.salt.bytes, cost: original.header.passcode.cost), creationDate: vectors.creationDate,
            password: vector.password)
        #expect(copy.bytes == original.bytes)
    }

    @Test("What is refused is told apart: damaged, newer or too costly, another password", arguments: cases.filter { $0.expect != "opens" })
    func refused(_ vector: Case) throws {
        let expected: [String: KeychainStatus] = ["decode": .decode, "notAvailable": .notAvailable, "authFailed": .authFailed]
        #expect(try BackupFile(vector.file.bytes).statusOfReading(password: vector.password) == expected[vector.expect])
    }
}
