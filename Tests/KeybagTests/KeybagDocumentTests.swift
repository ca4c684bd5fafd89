// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("Keybag test vectors")
struct KeybagVectorTests {
    struct Vectors: Decodable {
        let storeID: Hexadecimal
        let deviceSecret: Hexadecimal
        let cases: [Case]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        struct Key: Decodable, Sendable {
            let accessibility: UInt8
            let generation: UInt32
            let key: Hexadecimal
        }

        let name: String
        let copies: [Hexadecimal]
        let expect: String
        let cause: String?
        let damagedCopyCount: Int?
        let generation: UInt64?
        let protectorKind: UInt8?
        let protectorParameters: Hexadecimal?
        let classKeys: [Key]?

        var testDescription: String { name }
    }

    static let vectors = Result { try TestVectors.load("keybag-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []
    static let causes: [String: KeychainFailure.Cause] = [
        "damaged": .damaged, "newerVersion": .newerVersion, "malformed": .malformed, "costRefused": .costRefused,
    ]

    @Test("The vectors contain valid and invalid cases")
    func vectorsAreRead() throws {
        let cases = try Self.vectors.get().cases
        #expect(cases.contains { $0.expect == "opens" } && cases.contains { $0.expect == "notAvailable" })
    }

    private func open(_ vector: Case) throws -> Result<OpenKeybag, KeychainFailure> {
        let vectors = try Self.vectors.get()
        let storeID = try vectors.storeID.identifier()
        let secret = try vectors.deviceSecret.secret()
        do throws(KeychainFailure) {
            return .success(try OpenKeybag(copies: vector.copies.map(\.bytes), storeID: storeID, deviceSecret: secret))
        } catch {
            return .failure(error)
        }
    }

    @Test("A valid keybag opens with its keys", arguments: cases.filter { $0.expect == "opens" })
    func validKeybag(_ vector: Case) throws {
        let keybag = try open(vector).get()
        #expect(keybag.damagedCopyCount == vector.damagedCopyCount)
        #expect(keybag.keybagGeneration == vector.generation)
        #expect(keybag.document.protector.kind.rawValue == vector.protectorKind)
        #expect(keybag.document.protector.parameters == vector.protectorParameters?.bytes)
        let keys = try #require(vector.classKeys)
        for key in keys {
            let accessibility = try #require(ItemAccessibility(code: key.accessibility))
            let lent = try keybag.withClassKey(for: accessibility, generation: key.generation) {
                (key: borrowing ClassKey) throws(KeychainFailure) in key.copiedBytes()
            }
            #expect(lent == key.key.bytes)
            let newest = keys.filter { $0.accessibility == key.accessibility }.map(\.generation).max()
            #expect(try keybag.currentGeneration(for: accessibility) == newest)
        }
    }

    @Test("An invalid keybag is errSecNotAvailable, with the right cause", arguments: cases.filter { $0.expect == "notAvailable" })
    func refusedKeybag(_ vector: Case) throws {
        guard case .failure(let failure) = try open(vector) else {
            Issue.record("the keybag opened")
            return
        }
        #expect(failure.status == .notAvailable)
        let cause = try #require(vector.cause.flatMap { Self.causes[$0] })
        #expect(failure.subject == .keybag && failure.cause == cause, "\(failure)")
    }

    @Test("Encoding what was parsed gives the same bytes", arguments: cases.filter { $0.expect == "opens" && $0.damagedCopyCount == 0 })
    func reencodedKeybag(_ vector: Case) throws {
        let vectors = try Self.vectors.get()
        let storeID = try vectors.storeID.identifier()
        let secret = try vectors.deviceSecret.secret()
        let bytes = try #require(vector.copies.first).bytes
        let parsed = try KeybagDocument(authentic: bytes, storeID: storeID)
        let key = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: secret, storeID: storeID))
        #expect(KeybagDocument(storeID: storeID, content: parsed.content, authenticatedBy: key).encoded == bytes)
    }
}

@Suite("A damaged keybag")
struct KeybagDamageTests {
    private static let storeID = StoreID.random()

    private func failure(
        opening copies: [[UInt8]], storeID: StoreID = storeID, _ secret: borrowing SecretBytes
    ) -> KeychainFailure? {
        do throws(KeychainFailure) {
            _ = try OpenKeybag(copies: copies, storeID: storeID, deviceSecret: secret)
            return nil
        } catch {
            return error
        }
    }

    @Test("If any byte of one copy is altered, the other copy is used, and the damage is reported")
    func oneCopyAltered() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let good = try SampleStore(storeID: Self.storeID, deviceSecret: secret).document.encoded
        for index in good.indices {
            var altered = good
            altered[index] ^= 0x40
            let first = try OpenKeybag(copies: [altered, good], storeID: Self.storeID, deviceSecret: secret)
            let second = try OpenKeybag(copies: [good, altered], storeID: Self.storeID, deviceSecret: secret)
            #expect(first.damagedCopyCount == 1 && second.damagedCopyCount == 1, "byte \(index)")
            #expect(first.document.encoded == good && second.document.encoded == good, "byte \(index)")
        }
    }

    @Test("If any byte of both copies is altered, the keybag is errSecNotAvailable")
    func bothCopiesAltered() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let good = try SampleStore(storeID: Self.storeID, deviceSecret: secret).document.encoded
        for index in good.indices {
            var altered = good
            altered[index] ^= 1
            let failure = failure(opening: [altered, altered], secret)
            #expect(failure?.status == .notAvailable, "byte \(index)")
        }
    }

    @Test("An altered keybag with a passcode is damaged, before the passcode is checked")
    func passcodeKeybagAltered() throws {
        let store = try PasscodeStore()
        let good = store.change.document.encoded
        for index in good.indices {
            var altered = good
            altered[index] ^= 1
            let failure = failure(opening: [altered, altered], storeID: store.storeID, store.deviceSecret)
            #expect(failure?.status == .notAvailable && failure?.isDamage == true, "byte \(index)")
        }
    }

    @Test("If only the copy from before the passcode is left, it is used, and its keys open nothing newer")
    func copyFromBefore() throws {
        let store = try PasscodeStore()
        let copies = [store.original.document.encoded, store.change.document.encoded]
        let both = try OpenKeybag(copies: copies, storeID: store.storeID, deviceSecret: store.deviceSecret)
        #expect(both.isPasscodeSet && both.damagedCopyCount == 1)
        let before = try OpenKeybag(copies: [copies[0], []], storeID: store.storeID, deviceSecret: store.deviceSecret)
        #expect(!before.isPasscodeSet && before.availability(of: .whenUnlocked, generation: 2) == .missing)
    }

    @Test("A truncated keybag is errSecNotAvailable")
    func truncated() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let good = try SampleStore(storeID: Self.storeID, deviceSecret: secret).document.encoded
        for count in 0..<good.count {
            let cut = Array(good.prefix(count))
            let failure = failure(opening: [cut, cut], secret)
            #expect(failure?.status == .notAvailable, "\(count) bytes")
        }
    }

    @Test("With another device secret the keybag is reported as damaged")
    func otherDeviceSecret() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let other = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let good = try SampleStore(storeID: Self.storeID, deviceSecret: secret).document.encoded
        let failure = failure(opening: [good, good], other)
        #expect(failure?.status == .notAvailable && failure?.subject == .keybag && failure?.cause == .damaged)
    }

    @Test("The keybag of another store with the same device secret does not open")
    func otherStore() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let good = try SampleStore(storeID: Self.storeID, deviceSecret: secret).document.encoded
        let failure = failure(opening: [good, good], storeID: .random(), secret)
        #expect(failure?.status == .notAvailable)
    }

    @Test("The protector can be read without the device secret, from any copy that names it")
    func protectorHints() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let record = KeybagDocument.ProtectorRecord(kind: .systemdCredential, parameters: Array("a name".utf8))
        let good = try OpenKeybag.make(storeID: Self.storeID, deviceSecret: secret, protector: record).encoded
        #expect(try KeybagDocument.protectorHints(in: [good, good]) == [record])
        #expect(try KeybagDocument.protectorHints(in: [[], good]) == [record])
        #expect(try KeybagDocument.protectorHints(in: [Array(good.prefix(60)), Array(good.prefix(20))]) == [])
        #expect(try KeybagDocument.protectorHints(in: []) == [])
        var newer = good
        newer[4] = 2
        #expect(try KeybagDocument.protectorHints(in: [newer, good]) == [record])
        #expect(throws: KeychainFailure(.notAvailable, "")) { try KeybagDocument.protectorHints(in: [newer, newer]) }
    }
}

@Suite("An open keybag")
struct OpenKeybagTests {
    @Test("An open keybag satisfies the contract of key providers")
    func contract() throws {
        #expect(KeyProviderContract.violations(of: try SampleStore().keybag, isPasscodeSet: false) == [])
    }

    @Test("A new keybag has generation 1 and two valid copies")
    func newKeybag() throws {
        let store = try SampleStore()
        #expect(store.keybag.keybagGeneration == 1 && store.keybag.damagedCopyCount == 0)
        #expect(store.keybag.document.protector == KeybagDocument.ProtectorRecord(kind: .keyFile))
        #expect(store.keybag.storeID == store.storeID)
    }

    @Test("A reopened keybag lends the same keys")
    func reopened() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let store = try SampleStore(deviceSecret: secret)
        let again = try OpenKeybag(copies: [store.document.encoded], storeID: store.storeID, deviceSecret: secret)
        func key(_ keybag: OpenKeybag) throws(KeychainFailure) -> [UInt8] {
            try keybag.withClassKey(for: .whenUnlocked, generation: 1) { (key: borrowing ClassKey) throws(KeychainFailure) in
                key.copiedBytes()
            }
        }
        #expect(try key(store.keybag) == key(again))
    }

    @Test("Two stores with one device secret share no key")
    func storesAreSeparate() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        for purpose in [KeyPurpose.deviceKey, .keybagAuthentication] {
            let one = try purpose.derive(from: secret, storeID: StoreID(high: 0, low: 1))
            let two = try purpose.derive(from: secret, storeID: StoreID(high: 0, low: 2))
            // The bytes are copied within the closures.
            #expect(unsafe one.withBytes { unsafe Array($0) } != two.withBytes { unsafe Array($0) })
        }
    }

    @Test("Without a passcode, the class that needs one fails with passcodeNotSet")
    func passcodeClass() throws {
        let keybag = try SampleStore().keybag
        let failure = #expect(throws: KeychainFailure.self) {
            try keybag.currentGeneration(for: .whenPasscodeSetThisDeviceOnly)
        }
        #expect(failure?.status == .authFailed && failure?.refusal == .passcodeNotSet)
    }
}
