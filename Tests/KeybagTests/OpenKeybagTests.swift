// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting
import Testing

@testable import Keybag

@Suite("An open keybag")
struct OpenKeybagTests {
    @Test("It keeps the contract of a key provider")
    func contract() throws {
        #expect(KeyProviderContract.violations(of: try SampleStore().keybag, isPasscodeSet: false) == [])
    }

    @Test("A new keybag has generation 1 and two sound copies")
    func newKeybag() throws {
        let store = try SampleStore()
        #expect(store.keybag.keybagGeneration == 1 && store.keybag.damagedCopyCount == 0)
        #expect(store.keybag.document.protector == KeybagDocument.ProtectorRecord(kind: .keyFile))
        #expect(store.keybag.storeID == store.storeID)
    }

    @Test("Opened again it lends the same keys")
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

    @Test("Without a passcode, the class that needs one says so")
    func passcodeClass() throws {
        let keybag = try SampleStore().keybag
        let failure = #expect(throws: KeychainFailure.self) {
            try keybag.currentGeneration(for: .whenPasscodeSetThisDeviceOnly)
        }
        #expect(failure?.status == .authFailed)
        #expect(failure?.reason == "no passcode is set")
    }
}
