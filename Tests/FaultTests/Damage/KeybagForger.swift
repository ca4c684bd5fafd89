// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation
import KeychainTestSupport

/// An attacker who can write to a keychain file and knows On-disk-format.md.
///
/// It shares no code with the library.
struct KeybagForger {
    /// Which of the two copies of the keybag the attacker replaces.
    enum Copies: CaseIterable {
        case both, first, second

        var tables: [String] {
            switch self {
            case .both: ["keybag", "keybag_copy"]
            case .first: ["keybag"]
            case .second: ["keybag_copy"]
            }
        }
    }

    static let codeByteCount = 32
    static let boxByteCount = 80
    static let publicKeyByteCount = 32

    let database: RawDatabase
    /// The fields of the keybag in the file.
    let fields: [UInt16: Data]
    let storeID: Data
    /// A secret of the attacker.
    let deviceSecret = SymmetricKey(size: .bits256)

    init(home: String) throws {
        database = try RawDatabase(home + "/keychain.db")
        let bytes = Data(try database.blob("SELECT bytes FROM keybag"))
        storeID = bytes[6..<22]
        var fields: [UInt16: Data] = [:]
        var rest = bytes[22..<bytes.count - Self.codeByteCount]
        while rest.count >= 6 {
            let tag = UInt16(Self.number(rest.prefix(2)))
            let count = Self.number(rest.dropFirst(2).prefix(4))
            fields[tag] = Data(rest.dropFirst(6).prefix(count))
            rest = rest.dropFirst(6 + count)
        }
        self.fields = fields
    }

    /// The recovery record in the file, with a device secret of the attacker in it.
    ///
    /// The public key is in clear, and anyone can seal to it.
    func recoveryRecord() throws -> Data {
        let record = fields[18] ?? Data()
        return Data(record.dropLast(Self.boxByteCount)) + (try box(to: record.prefix(Self.publicKeyByteCount)))
    }

    /// Seals the attacker's device secret to a public key.
    func box(to publicKey: Data) throws -> Data {
        let info = Data("keychain recovery v1".utf8) + storeID
        let recipient = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: publicKey)
        let suite = HPKE.Ciphersuite(kem: .Curve25519_HKDF_SHA256, kdf: .HKDF_SHA256, aead: .AES_GCM_256)
        var sender = try HPKE.Sender(recipientKey: recipient, ciphersuite: suite, info: info)
        let sealed = try sender.seal(Data(copying: deviceSecret))
        return sender.encapsulatedKey + sealed
    }

    /// The fields of a keybag without a passcode under the attacker's device secret, with keys that the attacker chose.
    ///
    /// `indexKey` and `rowTagKey` are the store's, if the attacker knows them. The generation is higher than any other.
    func fields(
        indexKey: SymmetricKey = SymmetricKey(size: .bits256), rowTagKey: SymmetricKey = SymmetricKey(size: .bits256),
        recoveryRecord: Data
    ) throws -> [UInt16: Data] {
        var classKeys = Data()
        for accessibility in UInt8(6)...11 { classKeys += try classKeyEntry(accessibility, SymmetricKey(size: .bits256)) }
        return [
            1: Self.bytes(1_000, count: 8), 2: fields[2] ?? Data(), 3: try wrapped(indexKey), 4: try wrapped(rowTagKey), 5: classKeys,
            18: recoveryRecord,
        ]
    }

    /// Class key entries, with keys of the attacker in place of those that the device key wraps.
    func deviceBoundClassKeys(of entries: Data) throws -> Data {
        var result = Data()
        for start in stride(from: entries.startIndex, to: entries.endIndex, by: 62) {
            let entry = entries[start..<start + 62]
            result += entry[start + 5] == 1 ? try classKeyEntry(entry[start], SymmetricKey(size: .bits256)) : entry
        }
        return result
    }

    /// Writes an authentic keybag, and makes the store's generation that of the keybag.
    func write(_ fields: [UInt16: Data], to copies: Copies = .both) throws {
        var keybag = Data("KBAG".utf8) + Self.bytes(1, count: 2) + storeID
        for (tag, value) in fields.sorted(by: { $0.key < $1.key }) {
            keybag += Self.bytes(Int(tag), count: 2) + Self.bytes(value.count, count: 4) + value
        }
        keybag += Data(HMAC<SHA256>.authenticationCode(for: keybag, using: derived("keychain keybag mac v1")))
        let literal = "x'" + keybag.map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined() + "'"
        for table in copies.tables { try database.execute("UPDATE \(table) SET bytes = \(literal)") }
        if copies == .both { try database.execute("UPDATE meta SET keybag_generation = 1000") }
    }

    /// Writes a state with the digest of the present keybag, with the row-tag key of the store.
    ///
    /// The sum of the rows and its mask stay as they are.
    func sealState(rowTagKey: SymmetricKey) throws {
        let key = derived("keychain store state v1", from: rowTagKey)
        func code(_ use: UInt8, _ message: Data) -> Data {
            Data(HMAC<SHA256>.authenticationCode(for: Data([use]) + message, using: key))
        }
        var state = Data(try database.blob("SELECT state FROM meta"))
        state.replaceSubrange(33..<65, with: code(2, Data(try database.blob("SELECT bytes FROM keybag"))))
        state.replaceSubrange(97..<129, with: code(4, state.prefix(97)))
        let literal = "x'" + state.map { String(format: "%02x", $0) }.joined() + "'"
        try database.execute("UPDATE meta SET state = \(literal)")
    }

    /// Unwraps a key of the keybag in the file, with an earlier device secret of the store.
    func unwrapped(_ tag: UInt16, with deviceSecret: SymmetricKey) throws -> SymmetricKey {
        try AES.KeyWrap.unwrap(fields[tag] ?? Data(), using: derived("keychain device key v1", from: deviceSecret))
    }

    private func classKeyEntry(_ accessibility: UInt8, _ key: SymmetricKey) throws -> Data {
        let id = Data([accessibility]) + Self.bytes(1, count: 4)
        let check = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: key, salt: storeID, info: Data("keychain class key check v1".utf8) + id, outputByteCount: 16)
        return id + [1] + (try wrapped(key)) + Data(copying: check)
    }

    private func wrapped(_ key: SymmetricKey) throws -> Data {
        try AES.KeyWrap.wrap(key, using: derived("keychain device key v1"))
    }

    private func derived(_ info: String, from secret: SymmetricKey? = nil) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: secret ?? deviceSecret, salt: storeID, info: Data(info.utf8), outputByteCount: 32)
    }

    private static func number(_ bytes: Data) -> Int { bytes.reversed().reduce(0) { $0 << 8 | Int($1) } }

    private static func bytes(_ number: Int, count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }) }
}

extension Data {
    fileprivate init(copying key: SymmetricKey) {
        // The bytes are copied within the closure.
        self = unsafe key.withUnsafeBytes { unsafe Data($0) }
    }
}
