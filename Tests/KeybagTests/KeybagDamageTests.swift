// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@testable import Keybag

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

    @Test("With any one byte altered the other copy serves, and that is told")
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

    @Test("With both copies altered, at any byte, it is 'not available', and never a wrong passcode")
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

    @Test("With a passcode too: altered at any byte it is damaged, before any passcode is asked for")
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

    @Test("The copy from before a passcode was set serves when the other is lost, and its keys open nothing newer")
    func copyFromBefore() throws {
        let store = try PasscodeStore()
        let copies = [store.original.document.encoded, store.change.document.encoded]
        let both = try OpenKeybag(copies: copies, storeID: store.storeID, deviceSecret: store.deviceSecret)
        #expect(both.isPasscodeSet && both.damagedCopyCount == 1)
        let before = try OpenKeybag(copies: [copies[0], []], storeID: store.storeID, deviceSecret: store.deviceSecret)
        #expect(!before.isPasscodeSet && before.availability(of: .whenUnlocked, generation: 2) == .missing)
    }

    @Test("Cut anywhere, it is 'not available'")
    func truncated() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let good = try SampleStore(storeID: Self.storeID, deviceSecret: secret).document.encoded
        for count in 0..<good.count {
            let cut = Array(good.prefix(count))
            let failure = failure(opening: [cut, cut], secret)
            #expect(failure?.status == .notAvailable, "\(count) bytes")
        }
    }

    @Test("Another device secret does not open it, and the reason names both possibilities")
    func otherDeviceSecret() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let other = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let good = try SampleStore(storeID: Self.storeID, deviceSecret: secret).document.encoded
        let failure = failure(opening: [good, good], other)
        #expect(failure?.status == .notAvailable)
        let reason = try #require(failure).reason
        #expect(reason.contains("damaged") && reason.contains("another store"))
    }

    @Test("The keybag of another store with the same device secret does not open")
    func otherStore() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let good = try SampleStore(storeID: Self.storeID, deviceSecret: secret).document.encoded
        let failure = failure(opening: [good, good], storeID: .random(), secret)
        #expect(failure?.status == .notAvailable)
    }

    @Test("The protector can be read without the device secret, from whichever copy still names it")
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
