// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import KeychainCore

@testable internal import Keybag

/// Keybags below their authentication: the input is authenticated with the store's own key first.
struct KeybagTarget: FuzzTarget {
    static let name = "keybag"

    private enum Mode {
        static let isRaw: UInt8 = 1
        static let isUnlocked: UInt8 = 2
        static let isRecovered: UInt8 = 4
    }

    private let authenticationKey: Box

    /// A key has one owner, and a target is copied.
    private final class Box {
        let key: HMACKey
        init() throws(KeychainFailure) {
            key = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: FixedKeys.deviceSecret(), storeID: FixedKeys.storeID))
        }
    }

    init() throws { authenticationKey = try Box() }

    static func seeds() throws -> [[UInt8]] {
        let secret = try FixedKeys.deviceSecret()
        let fresh = try OpenKeybag.make(
            storeID: FixedKeys.storeID, deviceSecret: secret, protector: .init(kind: .keyFile, parameters: [1, 2]))
        let open = try OpenKeybag(copies: [fresh.encoded], storeID: FixedKeys.storeID, deviceSecret: secret)
        let locked = try open.settingPasscode(FixedKeys.passcode(), cost: FixedKeys.cost(), deviceSecret: secret).document
        let recoverable = try open.settingRecoveryKey(FixedKeys.recoveryKey(), keys: nil, deviceSecret: secret).document
        var content = fresh.content
        content.protector = .init(sealedDeviceSecret: SealedObjectTarget.example)
        let ofChip = KeybagDocument(storeID: FixedKeys.storeID, content: content, authenticatedBy: try Box().key)
        func seed(_ mode: UInt8, _ document: KeybagDocument) -> [UInt8] { [mode] + document.encoded.dropLast(KeybagDocument.codeByteCount) }
        return [
            seed(0, fresh), seed(0, locked), seed(Mode.isUnlocked, locked), seed(Mode.isRecovered, recoverable), seed(0, ofChip),
            [Mode.isRaw] + fresh.encoded,
        ]
    }

    func run(_ input: [UInt8]) throws {
        guard let mode = input.first else { return }
        let isRaw = mode & Mode.isRaw != 0
        let bytes = Array(input.dropFirst()) + (isRaw ? [] : code(over: Array(input.dropFirst())))
        _ = attempt(failingWith: .notAvailable) { () throws(KeychainFailure) in
            try KeybagDocument.protectorHints(in: [bytes, []])
        }
        if mode & Mode.isRecovered != 0 { try checkRecovery(from: bytes) }
        let secret = try FixedKeys.deviceSecret()
        let keybag = attempt(failingWith: .notAvailable) { () throws(KeychainFailure) in
            try OpenKeybag(copies: [bytes, bytes], storeID: FixedKeys.storeID, deviceSecret: secret)
        }
        guard let keybag else { return }
        let again = KeybagDocument(storeID: FixedKeys.storeID, content: keybag.document.content, authenticatedBy: authenticationKey.key)
        expect(again.encoded == bytes, "a keybag is accepted in a form that is never written")
        expect(keybag.damagedCopyCount == 0, "a copy counts as damaged")
        guard let cost = keybag.passcodeCost else { return }
        FixedKeys.expectBounded(cost)
        guard mode & Mode.isUnlocked != 0, FixedKeys.isCheap(cost) else { return }
        let keys = attempt(failingWith: .authFailed, .notAvailable) { () throws(KeychainFailure) in
            try keybag.unlockedKeys(passcode: FixedKeys.passcode(), deviceSecret: secret)
        }
        if let keys { expect(keys.document.encoded == bytes, "the keys are those of another keybag") }
    }

    /// What a recovery key opens is the store's own device secret, or nothing.
    private func checkRecovery(from bytes: [UInt8]) throws {
        let key = try FixedKeys.recoveryKey()
        let found = attempt(failingWith: .authFailed, .notAvailable) { () throws(KeychainFailure) in
            try OpenKeybag.recovering([bytes, []], with: key, storeID: FixedKeys.storeID)
        }
        guard let secret = found?.deviceSecret else { return }
        // Read within the closure.
        expect(unsafe secret.secret.withBytes { unsafe $0.elementsEqual(repeatElement(1, count: 32)) }, "another secret is recovered")
    }

    private func code(over bytes: [UInt8]) -> [UInt8] {
        // The bytes are read within the closure.
        Array(authenticationKey.key.authenticationCode { hash in unsafe bytes.withUnsafeBytes { unsafe hash.update(bufferPointer: $0) } })
    }
}
