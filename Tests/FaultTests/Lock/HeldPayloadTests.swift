// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing

@Suite("A held payload is used only if it belongs to the current keybag", .blocking)
struct HeldPayloadTests {
    private static let passcode = "swordfish"

    /// A payload of one slot, and the class keys in it.
    struct Payload: Sendable {
        let sealed: [UInt8]
        let keys: [UInt8]
    }

    /// A payload that another process of the user could put into the key holder.
    struct Forgery: Sendable, CustomTestStringConvertible {
        typealias Seal = (_ keys: [UInt8], _ slot: KeyHolderSlot?, _ keybag: KeybagIdentity?) throws -> [UInt8]

        let testDescription: String
        /// Makes the payload from the right one, from the one before the last change of keys, and from that of another store.
        ///
        /// `seal` seals keys as a process can that has the device secret, but not the passcode; by default for the right slot and keybag.
        let payload: @Sendable (_ right: Payload, _ stale: Payload, _ foreign: Payload, _ seal: Seal) throws -> [UInt8]

        static let all = sealed + unsealed

        private static let sealed = [
            Forgery(testDescription: "other keys") { right, _, _, seal in
                try seal(right.keys.enumerated().map { offset, byte in offset >= right.keys.count - 32 ? ~byte : byte }, nil, nil)
            },
            Forgery(testDescription: "one bit of one key") { right, _, _, seal in
                try seal(right.keys.enumerated().map { offset, byte in offset == right.keys.count - 5 ? byte ^ 1 : byte }, nil, nil)
            },
            Forgery(testDescription: "keys without the last byte") { right, _, _, seal in try seal(right.keys.dropLast(), nil, nil) },
            Forgery(testDescription: "keys with one byte more") { right, _, _, seal in try seal(right.keys + [0], nil, nil) },
            Forgery(testDescription: "one byte") { _, _, _, seal in try seal([1], nil, nil) },
            Forgery(testDescription: "keys of another store") { _, _, foreign, seal in try seal(foreign.keys, nil, nil) },
            Forgery(testDescription: "keys of the keybag before the change") { _, stale, _, seal in try seal(stale.keys, nil, nil) },
            Forgery(testDescription: "for another slot") { right, _, _, seal in try seal(right.keys, .device, nil) },
            Forgery(testDescription: "for a keybag that is still to come") { right, _, _, seal in
                try seal(right.keys, nil, KeybagIdentity(generation: 1_000, tag: 1))
            },
        ]

        private static let unsealed = [
            Forgery(testDescription: "the right keys, not sealed") { right, _, _, _ in right.keys },
            Forgery(testDescription: "the right keys, not sealed, with the number of the format") { right, _, _, _ in
                right.sealed[..<1] + right.keys
            },
            Forgery(testDescription: "random bytes") { right, _, _, _ in right.sealed.map { _ in UInt8.random(in: 0...255) } },
            Forgery(testDescription: "a single byte") { _, _, _, _ in [2] },
            Forgery(testDescription: "another format") { right, _, _, _ in [1] + right.sealed.dropFirst() },
            Forgery(testDescription: "all but the last byte") { right, _, _, _ in right.sealed.dropLast() },
            Forgery(testDescription: "one byte more") { right, _, _, _ in right.sealed + [0] },
            Forgery(testDescription: "one bit of the ciphertext") { right, _, _, _ in
                right.sealed.enumerated().map { offset, byte in offset == 20 ? byte ^ 1 : byte }
            },
            Forgery(testDescription: "of another store") { _, _, foreign, _ in foreign.sealed },
            Forgery(testDescription: "of the keybag before the change") { _, stale, _, _ in stale.sealed },
        ]
    }

    /// The right payload of each slot.
    private static func payloads(_ home: String) throws -> [KeyHolderSlot: Payload] {
        let opened = try OpenedStore(home: home)
        let payloads = try KeyHolderSlot.ofClassKeys.map { slot in
            let sealed = try opened.payload(for: slot, passcode)
            return (slot, Payload(sealed: sealed, keys: try #require(try opened.openedPayload(sealed, in: slot))))
        }
        return Dictionary(uniqueKeysWithValues: payloads)
    }

    /// Puts a payload into the key holder, as unlocking does.
    private static func plant(_ payload: [UInt8], in slot: KeyHolderSlot, home: String, _ holder: KeyHolderSelection) throws {
        let opened = try OpenedStore(home: home)
        let epoch = try opened.store.read { reading throws(KeychainFailure) in try reading.lockEpoch() }
        // The bytes are copied within the closure.
        let secret = try unsafe SecretBytes(byteCount: payload.count) { unsafe $0.copyBytes(from: payload) }
        let ofPresentKeybag = try opened.holder(holder).forKeybag(opened.keybag.identity)
        try ofPresentKeybag.hold(secret, in: slot, timeoutSeconds: nil, lockEpoch: epoch)
    }

    @Test(
        "A forged, foreign, or stale payload is ignored: the keychain stays locked, and nothing is written",
        arguments: Forgery.all, Scale.pick([.automatic], full: [KeyHolderSelection.automatic, .processMemory]))
    func refused(_ forgery: Forgery, holder: KeyHolderSelection) throws {
        try withLocalKeychain(holder: holder) { keychain, home in
            try keychain.addItemOfEachClass()
            try keychain.set(Self.passcode)
            let stale = try Self.payloads(home)
            try keychain.changePasscode(
                from: try Passcode(text: Self.passcode), to: try Passcode(text: Self.passcode), rotatingKeys: true, autoLock: .never)
            try keychain.lock(.everything)
            let right = try Self.payloads(home)
            let foreign = try withLocalKeychain(holder: holder) { other, otherHome in
                try other.set(Self.passcode)
                return try Self.payloads(otherHome)
            }
            let before = try rows(home)
            for slot in KeyHolderSlot.ofClassKeys {
                guard let right = right[slot], let stale = stale[slot], let foreign = foreign[slot] else { continue }
                let opened = try OpenedStore(home: home)
                let payload = try forgery.payload(right, stale, foreign) { keys, other, keybag in
                    try opened.sealedPayload(keys, in: other ?? slot, of: keybag ?? opened.keybag.identity)
                }
                try Self.plant(payload, in: slot, home: home, holder)
            }

            // Each on a keychain of its own: the first request may remove the payload.
            for request in [Request.add, .update, .read, .readAll] {
                let fresh = try LocalKeychain.withCheapPasscode(home: home, holder: holder)
                #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try request.perform(on: fresh) }
            }
            #expect(try rows(home) == before)
            #expect(try keychain.sessionStatus().state == .neverUnlocked)
            #expect(try keychain.secret(of: "dk") == "secret of dk")

            // The right payload, planted in the same way, unlocks: so it was the payload that was refused.
            for slot in KeyHolderSlot.ofClassKeys { try Self.plant(right[slot]?.sealed ?? [], in: slot, home: home, holder) }
            #expect(try keychain.sessionStatus().state == .unlocked)
            #expect(try keychain.secret(of: "ak") == "secret of ak")
        }
    }

    private enum Request {
        case add, update, read, readAll

        func perform(on keychain: LocalKeychain) throws {
            switch self {
            case .add: try keychain.addItem("new", "new", .whenUnlocked)
            case .update: try keychain.updateItem("ak", to: "new")
            case .read: _ = try keychain.secret(of: "ak")
            case .readAll: _ = try keychain.secrets()
            }
        }
    }

    /// Returns all rows, sealed.
    private func rows(_ home: String) throws -> [SealedRow] {
        var rows: [SealedRow] = []
        try OpenedStore(home: home).store.read { reading throws(KeychainFailure) in
            _ = try reading.forEachRow(matching: RowQuery(), includingSecrets: true) { row in
                rows.append(row)
                return .proceed
            }
        }
        return rows
    }
}
