// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

@Suite("Unlocking fails", .blocking)
struct WrongPasscodeTests {
    /// Every operation that requires the passcode, with a wrong one.
    enum Operation: CaseIterable {
        case unlock, change, askForRemoval, remove

        func perform(on keychain: LocalKeychain) throws {
            let wrong = "wrong"
            switch self {
            case .unlock: try keychain.unlock(with: wrong)
            case .change:
                try keychain.changePasscode(
                    from: try Passcode(text: wrong), to: try Passcode(text: "new one"), rotatingKeys: true, autoLock: .never)
            case .askForRemoval: _ = try keychain.passcodeRemoval(try Passcode(text: wrong))
            case .remove: try keychain.removePasscode(try Passcode(text: wrong), deleting: PasscodeRemoval(items: []))
            }
        }
    }

    private static func makeLockedKeychain(_ home: String) throws {
        let keychain = try LocalKeychain.withCheapPasscode(home: home)
        try keychain.addItemOfEachClass()
        try keychain.set("swordfish")
        try keychain.lock(.everything)
    }

    @Test("A wrong passcode throws authFailed, changes no file, and leaves the keychain locked", arguments: Operation.allCases)
    func wrongPasscode(_ operation: Operation) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            try Self.makeLockedKeychain(home)
            let before = try FileSnapshot(of: home)
            do {
                let keychain = try LocalKeychain.withCheapPasscode(home: home)
                let failure = #expect(throws: KeychainFailure(.authFailed, "")) { try operation.perform(on: keychain) }
                #expect(failure?.refusal == .wrongPasscode)
                #expect(try keychain.sessionStatus().state == .neverUnlocked)
            }
            #expect(try FileSnapshot(of: home) == before)

            let keychain = try LocalKeychain.withCheapPasscode(home: home)
            try keychain.unlock(with: "swordfish")
            #expect(try keychain.secret(of: "ak") == "secret of ak")
            keychain.forgetKeys()
        }
    }

    /// Ways to damage a copy of the keybag: all of its bytes, those that only the passcode's key authenticates, or its length.
    static let damages = ["zeroblob(length(bytes))", "substr(bytes, 1, length(bytes) - 40) || zeroblob(40)", "x''"]

    @Test(
        "If one copy of the keybag is damaged, the other is used, and verification reports it", arguments: ["keybag", "keybag_copy"],
        damages)
    func oneCopy(table: String, damage: String) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            try Self.makeLockedKeychain(home)
            try RawDatabase(home + "/keychain.db").execute("UPDATE \(table) SET bytes = CAST(\(damage) AS BLOB)")
            let keychain = try LocalKeychain.withCheapPasscode(home: home)
            #expect(throws: KeychainFailure(.authFailed, "")) { try keychain.unlock(with: "wrong") }
            try keychain.unlock(with: "swordfish")
            #expect(try keychain.secret(of: "ak") == "secret of ak")
            let report = try keychain.verify(purgingQuarantine: false)
            #expect(report.findings.isEmpty)
            #expect(report.damagedKeybagCopyCount == 1 && !report.isSound, "\(report.structuralProblems)")
            #expect(try keychain.report().store?.damagedKeybagCopyCount == 1)

            // The next change writes both copies.
            try keychain.changePasscode(
                from: try Passcode(text: "swordfish"), to: try Passcode(text: "12345"), rotatingKeys: false, autoLock: .standard)
            #expect(try keychain.verify(purgingQuarantine: false).isSound)
            keychain.forgetKeys()
        }
    }

    @Test(
        "If both copies of the keybag are damaged, the right and a wrong passcode throw notAvailable, and nothing is changed",
        arguments: damages)
    func bothCopies(damage: String) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            try Self.makeLockedKeychain(home)
            try RawDatabase(home + "/keychain.db").execute(
                "UPDATE keybag SET bytes = CAST(\(damage) AS BLOB); UPDATE keybag_copy SET bytes = CAST(\(damage) AS BLOB)")
            let before = try FileSnapshot(of: home)
            do {
                let keychain = try LocalKeychain.withCheapPasscode(home: home)
                let notAvailable = KeychainFailure(.notAvailable, "")
                for passcode in ["swordfish", "wrong"] {
                    let failure = #expect(throws: notAvailable) { try keychain.unlock(with: passcode) }
                    #expect(failure?.subject == .keybag && failure?.cause == .damaged)
                }
                for operation in Operation.allCases { #expect(throws: notAvailable) { try operation.perform(on: keychain) } }
                #expect(throws: notAvailable) { try keychain.set("another") }
                #expect(throws: notAvailable) { try keychain.secret(of: "ak") }
                #expect(throws: notAvailable) { try keychain.secret(of: "absent") }
                #expect(throws: notAvailable) { _ = try keychain.sessionStatus() }
            }
            #expect(try FileSnapshot(of: home) == before)
        }
    }

    @Test(
        "Locking a keychain that cannot be opened removes its held keys and throws the error of opening",
        arguments: [KeyHolderSelection.automatic, .processMemory], ["keybag", "key file", "store", "other store"])
    func lockWithoutKeybag(holder: KeyHolderSelection, missing: String) throws {
        try withLocalKeychain(holder: holder) { keychain, home in
            try keychain.set("swordfish")
            let opened = try OpenedStore(home: home)
            let held = try opened.holder(holder).forKeybag(opened.keybag.identity)
            let epoch = try opened.store.lockEpoch()
            for slot in KeyHolderSlot.ofClassKeys { #expect(try held.load(slot, for: .inspection, lockEpoch: epoch) != nil) }
            switch missing {
            case "keybag":
                try RawDatabase(home + "/keychain.db").execute("UPDATE keybag SET bytes = x''; UPDATE keybag_copy SET bytes = x''")
            case "key file":
                for name in try FileManager.default.contentsOfDirectory(atPath: home + "/keys") where name.hasSuffix(".key") {
                    try FileManager.default.removeItem(atPath: home + "/keys/" + name)
                }
            case "other store":
                try LocalKeychain(home: home + "/other").addItem("there", "one")
                try FileManager.default.removeItem(atPath: home + "/keychain.db")
                try FileManager.default.copyItem(atPath: home + "/other/keychain.db", toPath: home + "/keychain.db")
            // The store can be neither opened nor read.
            default: try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: home + "/keychain.db")
            }
            let other = try LocalKeychain.withCheapPasscode(home: home, holder: holder)
            #expect(throws: KeychainFailure(.notAvailable, "")) { try other.lock(.everything) }
            for slot in KeyHolderSlot.ofClassKeys { #expect(try held.load(slot, for: .inspection, lockEpoch: epoch) == nil) }
        }
    }

    @Test("A lock removes the held keys before it opens the keychain", arguments: [KeyHolderSelection.automatic, .processMemory])
    func lockBeforeOpening(holder: KeyHolderSelection) throws {
        try withLocalKeychain(holder: holder) { keychain, home in
            try keychain.set("swordfish")
            let opened = try OpenedStore(home: home)
            let held = try opened.holder(holder).forKeybag(opened.keybag.identity)
            let epoch = try opened.store.lockEpoch()
            let heldAtOpening = Mutex<[Bool]>([])
            let other = try LocalKeychain.withCheapPasscode(home: home, holder: holder) { configuration in
                let system = configuration.storeOptions.fileSystem
                // Opening examines the file system of the directory before it opens the file.
                configuration.storeOptions.fileSystem = FileSystemProbe(
                    typeNumber: { directory in
                        let isHeld = KeyHolderSlot.ofClassKeys.contains { slot in
                            (try? held.load(slot, for: .inspection, lockEpoch: epoch) != nil) ?? false
                        }
                        heldAtOpening.withLock { $0.append(isHeld) }
                        return system.typeNumber(directory)
                    }, typeName: system.typeName)
            }
            try other.lock(.everything)
            #expect(heldAtOpening.withLock { $0.first } == false)
        }
    }
}
