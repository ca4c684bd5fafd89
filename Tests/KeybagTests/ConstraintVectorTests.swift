// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("Test vectors of constraints")
struct ConstraintVectorTests {
    struct Vectors: Decodable {
        let storeID: Hexadecimal
        let deviceSecret: Hexadecimal
        let keybag: Hexadecimal
        let passcode: String
        let presencePublicKey: Hexadecimal
        let applicationPassword: Hexadecimal
        let biometrySecret: Hexadecimal
        let biometricKeys: Hexadecimal
        let biometryGeneration: UInt64
        let biometricKeysName: String
        let printsDigest: Hexadecimal
        let cases: [Case]
        let malformed: [Malformed]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let constraint: String
        let row: RowVectorTests.RowVector
        let attributes: Hexadecimal
        let secret: Hexadecimal

        var testDescription: String { name }
    }

    struct Malformed: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: Hexadecimal

        var testDescription: String { name }
    }

    static let vectors = Result { try TestVectors.load("constraints-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []
    static let malformed = (try? vectors.get().malformed) ?? []

    private let keybag: OpenKeybag
    private let unlocked: UnlockedKeys
    private let password: ApplicationPassword
    private let biometry: BiometricKeys

    init() throws {
        let vectors = try Self.vectors.get()
        let secret = try vectors.deviceSecret.secret()
        keybag = try OpenKeybag(copies: [vectors.keybag.bytes], storeID: vectors.storeID.identifier(), deviceSecret: secret)
        unlocked = try keybag.unlockedKeys(passcode: PasscodeStore.code(vectors.passcode), deviceSecret: secret)
        password = ApplicationPassword(try vectors.applicationPassword.secret())
        biometry = try BiometricKeys(
            encoded: vectors.biometricKeys.bytes, under: vectors.biometrySecret.secret(), storeID: vectors.storeID.identifier())
    }

    /// Everything that releases a key.
    private func allKeys() throws(KeychainFailure) -> ConstraintKeys {
        ConstraintKeys(presence: try release(), applicationPassword: password, biometry: biometry.release())
    }

    private func open(_ row: SealedRow, with keys: ConstraintKeys) throws(KeychainFailure) -> OpenedRow {
        let cipher = keybag.cipher
        return try unlocked.withClassKey(for: row.header.accessibility, generation: row.header.classKeyGeneration) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try cipher.open(row, includingSecret: true, with: keys, under: key)
        }
    }

    private func release() throws(KeychainFailure) -> PresenceRelease { try unlocked.presenceRelease(for: []) }

    @Test("The vectors are not empty")
    func vectorsAreRead() throws {
        let vectors = try Self.vectors.get()
        #expect(vectors.cases.count > 5 && vectors.malformed.count > 10)
        #expect(keybag.cipher.presencePublicKey == vectors.presencePublicKey.bytes)
    }

    @Test("A row opens with the keys that its constraint requires", arguments: cases)
    func opens(_ vector: Case) throws {
        let row = try vector.row.parsed()
        let opened = try open(row, with: allKeys())
        #expect(opened.attributes == ItemAttributes(encoded: vector.attributes.bytes))
        #expect(opened.secret == Data(vector.secret.bytes))
        #expect(keybag.cipher.isIntact(row))
    }

    @Test("Without one of the keys, a row stays sealed and reports its needs", arguments: cases)
    func needs(_ vector: Case) throws {
        let row = try vector.row.parsed()
        let constraint = try #require(ConstraintRecord(encoded: row.header.constraints ?? [])).constraint
        #expect(Self.text(of: constraint) == vector.constraint)
        for (keys, needsPasscode, needsPassword) in [
            (ConstraintKeys(), constraint.needsPresence, constraint.needsApplicationPassword),
            (ConstraintKeys(presence: try release()), false, constraint.needsApplicationPassword),
            (ConstraintKeys(applicationPassword: password), constraint.needsPresence, false),
        ] where needsPasscode || needsPassword {
            let failure = #expect(throws: KeychainFailure.self) { try open(row, with: keys) }
            #expect((failure?.needs?.passcodeClasses != nil) == needsPasscode)
            #expect((failure?.needs?.applicationPassword == .missing) == needsPassword)
        }
    }

    @Test("A finger opens what needs one, and not what needs the passcode", arguments: cases)
    func biometry(_ vector: Case) throws {
        let row = try vector.row.parsed()
        let record = try #require(ConstraintRecord(encoded: row.header.constraints ?? []))
        let keys = ConstraintKeys(applicationPassword: password, biometry: biometry.release())
        let isOpened = (try? open(row, with: keys)) != nil
        let hasKey =
            "\(record)".contains("iometryAny(sealed") || "\(record)".contains("CurrentSet(") || "\(record)".contains("OrBiometry")
        #expect(isOpened == (hasKey || !record.constraint.needsPresence))
        guard hasKey else { return }
        let kinds = record.constraint.biometryKinds
        let failure = #expect(throws: KeychainFailure.self) { try open(row, with: ConstraintKeys()) }
        let needs = try #require(failure?.needs)
        #expect(needs.biometry.union(needs.passcodeAlternative ?? []) == kinds)
        #expect((needs.passcodeClasses != nil) == record.constraint.needsPresence)
    }

    @Test("The key of another set of fingers opens nothing, and says that the item is lost")
    func otherSet() throws {
        let vector = try #require(Self.cases.first { $0.constraint == "biometryCurrentSet" })
        let row = try vector.row.parsed()
        let other = try biometry.replacing(
            set: FingerprintSet(printsDigest: Array(repeating: 1, count: 32), namesDigest: biometry.set.namesDigest))
        #expect(biometry.enrollment.setID.isOlder(than: other.enrollment.setID))
        #expect(other.enrollment.anyPublicKey == biometry.enrollment.anyPublicKey)
        #expect(throws: KeychainFailure(.itemNotFound, "")) {
            try open(row, with: ConstraintKeys(biometry: other.release()))
        }
        #expect(throws: KeychainFailure(.itemNotFound, "")) { try open(row, with: ConstraintKeys(enrollment: other.enrollment)) }
        // The key of an item that is not of these keys was not destroyed with theirs.
        let foreign = try BiometricKeys(for: other.set, storeID: Self.vectors.get().storeID.identifier()).replacing(set: biometry.set)
            .replacing(set: other.set).replacing(set: biometry.set)
        #expect(foreign.enrollment.setID.generation > biometry.enrollment.setID.generation)
        #expect(throws: KeychainFailure(.authFailed, "")) {
            try open(row, with: ConstraintKeys(biometry: foreign.release()))
        }
        // A match before the set changed does not open what was stored after it.
        let later = try #require(ConstraintRecord(encoded: row.header.constraints ?? []))
        guard case .biometryCurrentSet(let set, _) = later else { return }
        #expect(set == biometry.enrollment.setID)
    }

    @Test("The biometric keys are encoded as the other implementation encodes them, and refused with any altered byte")
    func biometricKeys() throws {
        let vectors = try Self.vectors.get()
        let secret = try vectors.biometrySecret.secret()
        #expect(biometry.enrollment.setID.generation == vectors.biometryGeneration && biometry.set.evidence == .prints)
        #expect(try biometry.encoded(under: secret) == vectors.biometricKeys.bytes)
        #expect(try BiometricKeys.name(for: secret, storeID: vectors.storeID.identifier()) == vectors.biometricKeysName)
        for index in vectors.biometricKeys.bytes.indices {
            var altered = vectors.biometricKeys.bytes
            altered[index] ^= 1
            #expect(throws: KeychainFailure(.decode, "")) {
                try BiometricKeys(encoded: altered, under: secret, storeID: vectors.storeID.identifier())
            }
        }
        #expect(throws: KeychainFailure(.decode, "")) {
            try BiometricKeys(
                encoded: vectors.biometricKeys.bytes, under: vectors.deviceSecret.secret(), storeID: vectors.storeID.identifier())
        }
        let files = [(path: Array("b/1".utf8), content: Array("print".utf8)), (path: Array("a/7".utf8), content: [])]
        #expect(FingerprintDigest.ofPrints(files) == vectors.printsDigest.bytes)
        #expect(FingerprintDigest.ofPrints(files.reversed()) == vectors.printsDigest.bytes)
    }

    private static func text(of constraint: AccessControl.Constraint) -> String {
        switch constraint {
        case .any(let parts): "any(\(parts.map(text).joined(separator: ",")))"
        case .all(let parts): "all(\(parts.map(text).joined(separator: ",")))"
        default: "\(constraint)"
        }
    }

    @Test("Encoding what was parsed gives the same bytes", arguments: cases)
    func encoding(_ vector: Case) throws {
        let bytes = try #require(try vector.row.parsed().header.constraints)
        #expect(ConstraintRecord(encoded: bytes)?.encoded == bytes)
    }

    @Test("A row with any altered byte of its constraint does not open", arguments: cases)
    func altered(_ vector: Case) throws {
        let row = try vector.row.parsed()
        let constraints = try #require(row.header.constraints)
        for index in constraints.indices {
            var altered = row
            altered.header.constraints?[index] ^= 1
            #expect(throws: KeychainFailure.self) {
                try open(altered, with: allKeys())
            }
        }
        var without = row
        without.header.constraints = nil
        #expect(throws: KeychainFailure(.decode, "")) { try open(without, with: ConstraintKeys()) }
    }

    @Test("Malformed records are refused", arguments: malformed)
    func malformedRecord(_ vector: Malformed) {
        #expect(ConstraintRecord(encoded: vector.bytes.bytes) == nil)
    }

    @Test("A record with two costs of the password is refused, because it would need two derivations")
    func twoCosts() {
        func password(_ byte: UInt8) -> ConstraintRecord {
            func bytes(_ count: Int) -> [UInt8] { Array(repeating: byte, count: count) }
            typealias Record = ConstraintRecord.PasswordRecord
            return .applicationPassword(
                Record(salt: bytes(Record.saltByteCount), cost: bytes(Record.costByteCount), check: bytes(Record.checkByteCount)))
        }
        #expect(ConstraintRecord(encoded: ConstraintRecord.all([password(1), password(1)]).encoded) != nil)
        #expect(ConstraintRecord(encoded: ConstraintRecord.all([password(1), password(2)]).encoded) == nil)
        let branches = [password(1), password(2)].map { ConstraintRecord.Branch($0, wrappedKey: nil) }
        #expect(ConstraintRecord(encoded: ConstraintRecord.any(branches).encoded) == nil)
    }

    @Test("A record longer than 4096 bytes is refused")
    func longRecord() {
        func presences(_ count: Int) -> ConstraintRecord {
            .all(
                Array(
                    repeating: .presence(.userPresence, sealedKey: Array(repeating: 1, count: ConstraintRecord.sealedKeyByteCount)),
                    count: count))
        }
        #expect(ConstraintRecord(encoded: ConstraintRecord.all([presences(16), presences(16), presences(16)]).encoded) != nil)
        #expect(
            ConstraintRecord(encoded: ConstraintRecord.all([presences(16), presences(16), presences(16), presences(16)]).encoded) == nil)
    }

    @Test("Rewrapping under another generation's class key changes nothing else")
    func rewrapping() throws {
        let row = try #require(Self.cases.first).row.parsed()
        let fresh = try SecretBytes(randomByteCount: ClassKey.byteCount)
        let newKey = ClassKey(accessibility: row.header.accessibility, generation: 9, secret: fresh)
        let cipher = keybag.cipher
        let rewrapped = try unlocked.withClassKey(for: row.header.accessibility, generation: row.header.classKeyGeneration) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try cipher.rewrapConstrained(row, from: key, to: newKey)
        }
        #expect(rewrapped.header.classKeyGeneration == 9 && rewrapped.sealedSecret == row.sealedSecret)
        #expect(rewrapped.header.constraints == row.header.constraints)
        #expect(cipher.isIntact(rewrapped))
        let opened = try cipher.open(rewrapped, includingSecret: true, with: ConstraintKeys(presence: release()), under: newKey)
        #expect(opened.secret == Data("12345".utf8))
        #expect(throws: KeychainFailure(.decode, "")) {
            try cipher.open(row, includingSecret: true, with: ConstraintKeys(presence: release()), under: newKey)
        }
    }
}
