// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

private let cipher = CircleCryptography()

private func shared(_ bytes: [UInt8]) throws -> SharedSecretBytes {
    // The bytes are copied within the closure.
    SharedSecretBytes(try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) })
}

@Suite("The cryptography of a circle agrees with another implementation")
struct CircleVectorTests {
    struct Vectors: Decodable {
        struct PublicKeys: Decodable {
            let signing: Hexadecimal
            let whenUnlockedBox: Hexadecimal
            let afterFirstUnlockBox: Hexadecimal

            func parsed() -> DevicePublicKeys? {
                DevicePublicKeys(
                    signing: signing.bytes, whenUnlockedBox: whenUnlockedBox.bytes, afterFirstUnlockBox: afterFirstUnlockBox.bytes)
            }
        }

        struct Signature: Decodable {
            let message: Hexadecimal
            let signature: Hexadecimal
        }

        struct Box: Decodable {
            let lane: UInt8
            let keyID: Hexadecimal
            let box: Hexadecimal
        }

        struct Content: Decodable {
            let name: String
            let content: Hexadecimal
            let header: Hexadecimal
            let random: Hexadecimal
            let wrappedKey: Hexadecimal
            let ciphertext: Hexadecimal
        }

        struct BadPadding: Decodable {
            let header: Hexadecimal
            let wrappedKey: Hexadecimal
            let ciphertext: Hexadecimal
        }

        struct Message: Decodable {
            let kind: UInt8
            let content: Hexadecimal
            let salt: Hexadecimal
            let message: Hexadecimal
        }

        let circle: Hexadecimal
        let device: Hexadecimal
        let signingKey: Hexadecimal
        let whenUnlockedBoxKey: Hexadecimal
        let afterFirstUnlockBoxKey: Hexadecimal
        let publicKeys: PublicKeys
        let signatures: [Signature]
        let laneKey: Hexadecimal
        let olderLaneKey: Hexadecimal
        let wrappedOlderKey: Hexadecimal
        let boxes: [Box]
        let contents: [Content]
        let badPadding: BadPadding
        let invitationCode: Hexadecimal
        let invitation: Hexadecimal
        let invitationCodeText: String
        let messages: [Message]
        let recoveryKit: Hexadecimal
        let recoveryKitText: String
        let recoveryKitPublicKeys: PublicKeys
        let circleCode: Hexadecimal

        func deviceKeys() throws -> DeviceKeys {
            try DeviceKeys(
                signingKey: shared(signingKey.bytes), whenUnlockedBoxKey: shared(whenUnlockedBoxKey.bytes),
                afterFirstUnlockBoxKey: shared(afterFirstUnlockBoxKey.bytes))
        }
    }

    private let vectors = Result { try TestVectors.load("circle-v1.json", as: Vectors.self) }

    @Test("Public keys and signatures")
    func signatures() throws {
        let vectors = try vectors.get()
        let keys = try vectors.deviceKeys()
        #expect(keys.publicKeys == vectors.publicKeys.parsed())
        for vector in vectors.signatures {
            #expect(try keys.sign(vector.message.bytes) == vector.signature.bytes)
            #expect(cipher.isValid(vector.signature.bytes, of: vector.message.bytes, by: keys.publicKeys.signing))
            #expect(!cipher.isValid(vector.signature.bytes, of: vector.message.bytes + [0], by: keys.publicKeys.signing))
        }
    }

    @Test("Lane keys: identifiers, boxes, and older keys")
    func laneKeys() throws {
        let vectors = try vectors.get()
        let keys = try vectors.deviceKeys()
        let laneKey = try shared(vectors.laneKey.bytes)
        for vector in vectors.boxes {
            let lane = try #require(Lane(rawValue: vector.lane))
            let id = try cipher.laneKeyID(of: laneKey, circle: CircleID(vectors.circle.identifier()), lane: lane)
            #expect(id.bytes == vector.keyID.bytes)
            let binding = LaneKeyBox.Binding(
                circle: CircleID(try vectors.circle.identifier()), lane: lane, key: id, device: DeviceID(try vectors.device.identifier()))
            #expect(try keys.openBox(vector.box.bytes, binding: binding).secret.copiedBytes() == vectors.laneKey.bytes)
        }
        let older = try cipher.unwrap(vectors.wrappedOlderKey.bytes, under: laneKey)
        #expect(older.secret.copiedBytes() == vectors.olderLaneKey.bytes)
        #expect(try cipher.wrap(older, under: laneKey) == vectors.wrappedOlderKey.bytes)
    }

    @Test("Contents of batches and checkpoints")
    func contents() throws {
        let vectors = try vectors.get()
        let laneKey = try shared(vectors.laneKey.bytes)
        for vector in vectors.contents {
            let sealed = SealedContent(wrappedKey: vector.wrappedKey.bytes, ciphertext: vector.ciphertext.bytes)
            #expect(try cipher.open(sealed, header: vector.header.bytes, under: laneKey) == vector.content.bytes, "\(vector.name)")
            let random = try shared(vector.random.bytes)
            let ours = try cipher.seal(vector.content.bytes, header: vector.header.bytes, under: laneKey, random: random.copy())
            #expect(ours == sealed, "\(vector.name)")
        }
    }

    @Test("A content whose padding is not exact is refused, although it is authentic")
    func badPadding() throws {
        let vectors = try vectors.get()
        let laneKey = try shared(vectors.laneKey.bytes)
        let sealed = SealedContent(wrappedKey: vectors.badPadding.wrappedKey.bytes, ciphertext: vectors.badPadding.ciphertext.bytes)
        let failure = #expect(throws: KeychainFailure.self) {
            try cipher.open(sealed, header: vectors.badPadding.header.bytes, under: laneKey)
        }
        #expect(failure?.status == .decode)
    }

    @Test("Invitations and join messages")
    func invitations() throws {
        let vectors = try vectors.get()
        let code = try shared(vectors.invitationCode.bytes)
        #expect(try cipher.invitationID(of: code).bytes == vectors.invitation.bytes)
        for vector in vectors.messages {
            #expect(try cipher.openJoinMessage(vector.message.bytes, kind: vector.kind, code: code) == vector.content.bytes)
            let ours = try cipher.sealJoinMessage(vector.content.bytes, kind: vector.kind, code: code, salt: vector.salt.bytes)
            #expect(ours == vector.message.bytes)
        }
    }

    @Test("Recovery kits")
    func recoveryKits() throws {
        let vectors = try vectors.get()
        let kit = try shared(vectors.recoveryKit.bytes)
        #expect(try cipher.deviceKeys(ofRecoveryKit: kit).publicKeys == vectors.recoveryKitPublicKeys.parsed())
        #expect(try cipher.circleCode(CircleID(vectors.circle.identifier()), recoveryKit: kit) == vectors.circleCode.bytes)
    }

    @Test("The texts of codes and of recovery kits")
    func texts() throws {
        let vectors = try vectors.get()
        for (secret, text, form) in [
            (vectors.invitationCode, vectors.invitationCodeText, WrittenSecret.invitationCode),
            (vectors.recoveryKit, vectors.recoveryKitText, .recoveryKit),
        ] {
            #expect(try cipher.text(of: shared(secret.bytes), as: form).copiedBytes() == Array(text.utf8))
            #expect(try cipher.secret(typed: shared(Array(text.utf8)).secret, as: form).secret.copiedBytes() == secret.bytes)
        }
    }
}

@Suite("Altered and foreign bytes open nothing in a circle")
struct CircleDamageTests {
    private let circle = CircleID(.random())

    private static func refuses(_ call: () throws(KeychainFailure) -> Void) -> Bool {
        do throws(KeychainFailure) {
            try call()
            return false
        } catch {
            return error.status == .decode
        }
    }

    private static func flips(of bytes: [UInt8]) -> [[UInt8]] {
        bytes.indices.map { index in
            var altered = bytes
            altered[index] ^= 1
            return altered
        }
    }

    @Test("A box, with one bit flipped, for another lane, key, circle, or device")
    func boxes() throws {
        let keys = try DeviceKeys()
        let laneKey = try cipher.makeLaneKey()
        let id = try cipher.laneKeyID(of: laneKey, circle: circle, lane: .whenUnlocked)
        let device = DeviceID(.random())
        let binding = LaneKeyBox.Binding(circle: circle, lane: .whenUnlocked, key: id, device: device)
        let box = try cipher.sealBox(laneKey, binding: binding, to: keys.publicKeys.whenUnlockedBox)
        #expect(box.count == LaneKeyBox.byteCount)
        #expect(try keys.openBox(box, binding: binding).secret.copiedBytes() == laneKey.secret.copiedBytes())

        for altered in Self.flips(of: box) + [[], Array(box.dropLast()), box + [0]] {
            #expect(Self.refuses { () throws(KeychainFailure) in _ = try keys.openBox(altered, binding: binding) })
        }
        let others = [
            LaneKeyBox.Binding(circle: CircleID(.random()), lane: .whenUnlocked, key: id, device: device),
            LaneKeyBox.Binding(circle: circle, lane: .afterFirstUnlock, key: id, device: device),
            LaneKeyBox.Binding(circle: circle, lane: .whenUnlocked, key: LaneKeyID(.random()), device: device),
            LaneKeyBox.Binding(circle: circle, lane: .whenUnlocked, key: id, device: DeviceID(.random())),
        ]
        for other in others {
            #expect(Self.refuses { () throws(KeychainFailure) in _ = try keys.openBox(box, binding: other) })
        }
        let stranger = try DeviceKeys()
        #expect(Self.refuses { () throws(KeychainFailure) in _ = try stranger.openBox(box, binding: binding) })
    }

    @Test("A content, with one bit flipped, under another header or lane key")
    func contents() throws {
        let laneKey = try cipher.makeLaneKey()
        let content = Array("Skroob".utf8)
        let header: [UInt8] = [1, 2, 3]
        let sealed = try cipher.seal(content, header: header, under: laneKey)
        #expect(try cipher.open(sealed, header: header, under: laneKey) == content)

        let altered =
            Self.flips(of: sealed.wrappedKey).map { SealedContent(wrappedKey: $0, ciphertext: sealed.ciphertext) }
            + (Self.flips(of: sealed.ciphertext) + [[], Array(sealed.ciphertext.dropLast())]).map {
                SealedContent(wrappedKey: sealed.wrappedKey, ciphertext: $0)
            }
        for other in altered {
            #expect(Self.refuses { () throws(KeychainFailure) in _ = try cipher.open(other, header: header, under: laneKey) })
        }
        #expect(Self.refuses { () throws(KeychainFailure) in _ = try cipher.open(sealed, header: [1, 2], under: laneKey) })
        let otherKey = try cipher.makeLaneKey()
        #expect(Self.refuses { () throws(KeychainFailure) in _ = try cipher.open(sealed, header: header, under: otherKey) })
    }

    @Test("Two contents with the same random bytes have different keys, as after a machine is resumed twice")
    func resumedTwice() throws {
        let laneKey = try cipher.makeLaneKey()
        let random = try shared(Array(repeating: 7, count: 32))
        let first = try cipher.seal([1], header: [], under: laneKey, random: random.copy())
        let second = try cipher.seal([2], header: [], under: laneKey, random: random.copy())
        #expect(first.wrappedKey != second.wrappedKey)
    }

    @Test("A join message, with one bit flipped, of another kind or code")
    func joinMessages() throws {
        let code = try cipher.makeInvitationCode()
        let message = try cipher.sealJoinMessage([1, 2, 3], kind: 1, code: code)
        #expect(try cipher.openJoinMessage(message, kind: 1, code: code) == [1, 2, 3])
        for altered in Self.flips(of: message) + [[], Array(message.dropLast())] {
            #expect(Self.refuses { () throws(KeychainFailure) in _ = try cipher.openJoinMessage(altered, kind: 1, code: code) })
        }
        #expect(Self.refuses { () throws(KeychainFailure) in _ = try cipher.openJoinMessage(message, kind: 2, code: code) })
        let other = try cipher.makeInvitationCode()
        #expect(Self.refuses { () throws(KeychainFailure) in _ = try cipher.openJoinMessage(message, kind: 1, code: other) })
    }

    @Test("Signatures and public keys of any size are refused without a trap", arguments: [0, 1, 31, 32, 33, 63, 64, 65])
    func sizes(_ count: Int) throws {
        let keys = try DeviceKeys()
        let bytes = [UInt8](repeating: 0, count: count)
        #expect(!cipher.isValid(bytes, of: [], by: keys.publicKeys.signing))
        #expect(!cipher.isValid(try keys.sign([1]), of: [2], by: bytes))
        #expect(Self.refuses { () throws(KeychainFailure) in _ = try cipher.unwrap(bytes, under: cipher.makeLaneKey()) })
    }

    /// The points of small order in their canonical forms (RFC 7748; Bernstein, "Curve25519: new Diffie-Hellman speed records").
    private static let pointsOfSmallOrder = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ]

    @Test("Nothing is sealed to a public key of a small subgroup, because anyone could open it", arguments: pointsOfSmallOrder)
    func smallSubgroup(_ key: String) throws {
        let laneKey = try cipher.makeLaneKey()
        let binding = LaneKeyBox.Binding(circle: circle, lane: .whenUnlocked, key: LaneKeyID(.random()), device: DeviceID(.random()))
        let failure = #expect(throws: KeychainFailure.self) {
            try cipher.sealBox(laneKey, binding: binding, to: Hexadecimal(key).bytes)
        }
        #expect(failure?.status == .parameter)
    }
}

@Suite("The keys of a device in a circle")
struct CircleDeviceKeyTests {
    @Test("While a class is locked, its boxes stay closed, and the device still signs")
    func locked() throws {
        let all = try DeviceKeys()
        let locked = DeviceKeys(
            all.publicKeys, signingKey: all.signingKey, boxKeys: [.afterFirstUnlock: try all.boxKey(for: .afterFirstUnlock)])
        #expect(cipher.isValid(try locked.sign([1]), of: [1], by: all.publicKeys.signing))
        for lane in Lane.allCases {
            let laneKey = try cipher.makeLaneKey()
            let binding = LaneKeyBox.Binding(
                circle: CircleID(.random()), lane: lane, key: LaneKeyID(.random()), device: DeviceID(.random()))
            let box = try cipher.sealBox(laneKey, binding: binding, to: all.publicKeys.box(for: lane))
            if lane == .whenUnlocked {
                let failure = #expect(throws: KeychainFailure.self) { try locked.openBox(box, binding: binding) }
                #expect(failure?.status == .interactionNotAllowed)
            } else {
                #expect(try locked.openBox(box, binding: binding).secret.copiedBytes() == laneKey.secret.copiedBytes())
            }
        }
    }

    @Test("Codes of invitations have 125 random bits, and two kits have nothing in common")
    func randomness() throws {
        let codes = try (0..<20).map { _ in try cipher.makeInvitationCode().secret.copiedBytes() }
        #expect(Set(codes).count == codes.count && codes.allSatisfy { $0.count == 16 && $0[15] & 7 == 0 })
        let kits = [try cipher.makeRecoveryKit(), try cipher.makeRecoveryKit()]
        let keys = try kits.map { try cipher.deviceKeys(ofRecoveryKit: $0).publicKeys }
        #expect(keys[0] != keys[1])
        let circle = CircleID(.random())
        #expect(try cipher.circleCode(circle, recoveryKit: kits[0]) != cipher.circleCode(circle, recoveryKit: kits[1]))
    }
}

@Suite("The texts of codes and of recovery kits")
struct WrittenSecretTests {
    private static func secret(_ form: WrittenSecret) throws -> SharedSecretBytes {
        form == .invitationCode ? try cipher.makeInvitationCode() : try cipher.makeRecoveryKit()
    }

    private static func text(_ secret: SharedSecretBytes, _ form: WrittenSecret) throws -> String {
        String(decoding: try cipher.text(of: secret, as: form).copiedBytes(), as: UTF8.self)
    }

    private static func bytes(_ typed: String, _ form: WrittenSecret) throws -> [UInt8] {
        try cipher.secret(typed: shared(Array(typed.utf8)).secret, as: form).secret.copiedBytes()
    }

    @Test(
        "A text has groups of four characters, and is read in upper or lower case, with or without dashes",
        arguments: WrittenSecret.allCases)
    func readAgain(form: WrittenSecret) throws {
        for _ in 0..<50 {
            let secret = try Self.secret(form)
            let text = try Self.text(secret, form)
            let groups = text.split(separator: "-", omittingEmptySubsequences: false)
            #expect(groups.count == (form == .invitationCode ? 7 : 9) && groups.allSatisfy { $0.count == 4 })
            for typed in [text, text.lowercased(), text.replacing("-", with: ""), text.replacing("0", with: "o").replacing("1", with: "l")]
            {
                #expect(try Self.bytes(typed, form) == secret.secret.copiedBytes())
            }
        }
    }

    @Test(
        "Typing errors are detected: another character, two that are exchanged, and one too few or too many",
        arguments: WrittenSecret.allCases)
    func mistyped(form: WrittenSecret) throws {
        let letters = Array(try Self.text(Self.secret(form), form).filter { $0 != "-" })
        var acceptedCount = 0
        var count = 0
        for index in letters.indices {
            var exchanged = letters
            if index > 0 { exchanged.swapAt(index - 1, index) }
            let others = "0123456789ABCDEFGHJKMNPQRSTVWXYZ".map { letter in
                var typed = letters
                typed[index] = letter
                return typed
            }
            for typed in others + [exchanged] where typed != letters {
                count += 1
                if (try? Self.bytes(String(typed), form)) != nil { acceptedCount += 1 }
            }
        }
        // The checksum of a code accepts one of 32,768 by chance.
        #expect(count > 800 && acceptedCount < 5)
        for typed in [String(letters.dropLast()), String(letters + ["0"]), "-", String(letters.dropLast()) + "U"] {
            let failure = #expect(throws: KeychainFailure.self) { try Self.bytes(typed, form) }
            #expect(failure?.status == .parameter)
        }
    }

    @Test("A recovery kit is no recovery key, although both have the same form")
    func otherKind() throws {
        let key = try RecoveryKey()
        let failure = #expect(throws: KeychainFailure.self) { try cipher.secret(typed: key.text(), as: .recoveryKit) }
        #expect(failure?.status == .parameter && failure?.cause == .mistyped)
    }
}
