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

    /// A payload that another process of the user could put into the key holder.
    struct Forgery: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Makes the payload from the right one, from the one before the last change of keys, and from that of another store.
        let payload: @Sendable (_ right: [UInt8], _ stale: [UInt8], _ foreign: [UInt8]) -> [UInt8]

        static let all = [
            Forgery(testDescription: "the right format with other keys") { right, _, _ in
                right.enumerated().map { offset, byte in offset >= right.count - 32 ? ~byte : byte }
            },
            Forgery(testDescription: "one bit of one key") { right, _, _ in
                right.enumerated().map { offset, byte in offset == right.count - 5 ? byte ^ 1 : byte }
            },
            Forgery(testDescription: "random bytes") { right, _, _ in right.map { _ in UInt8.random(in: 0...255) } },
            Forgery(testDescription: "a single byte") { _, _, _ in [1] },
            Forgery(testDescription: "all but the last byte") { right, _, _ in right.dropLast() },
            Forgery(testDescription: "one byte more") { right, _, _ in right + [0] },
            Forgery(testDescription: "of another store") { _, _, foreign in foreign },
            Forgery(testDescription: "of another store, under this one's name") { right, _, foreign in
                Array(right[..<27] + foreign[27...])
            },
            Forgery(testDescription: "of the keybag before the change") { _, stale, _ in stale },
            Forgery(testDescription: "of the keybag before the change, under the present one's number") { right, stale, _ in
                Array(right[..<27] + stale[27...])
            },
            Forgery(testDescription: "of a keybag that is still to come") { right, _, _ in
                right.enumerated().map { offset, byte in offset == 24 ? 1 : byte }
            },
        ]
    }

    /// The right payload of each slot.
    private static func payloads(_ home: String) throws -> [KeyHolderSlot: [UInt8]] {
        let opened = try OpenedStore(home: home)
        return try Dictionary(uniqueKeysWithValues: KeyHolderSlot.ofClassKeys.map { ($0, try opened.payload(for: $0, passcode)) })
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
                try Self.plant(forgery.payload(right, stale, foreign), in: slot, home: home, holder)
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
            for slot in KeyHolderSlot.ofClassKeys { try Self.plant(right[slot] ?? [], in: slot, home: home, holder) }
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
