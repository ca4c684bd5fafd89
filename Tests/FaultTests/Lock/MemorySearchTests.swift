// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Keybag
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("After a lock, no process has the keys that it takes away")
struct MemorySearchTests {
    private static let passcode = "swordfish"

    /// What one finds, and must not find, by name.
    fileprivate struct KnownSecrets {
        var all: [String: [UInt8]] = [:]
        /// Of ak, aku, akpu: what a lock takes away, the payload of the holder too.
        var lockBound: Set<String> { Set(all.keys.filter { $0.hasPrefix("ak") || $0.hasPrefix("payload unlocked") }) }
        var deviceBound: Set<String> { Set(all.keys.filter { $0.hasPrefix("dk") }) }

        mutating func add(_ keys: [ClassKeyID: [UInt8]]) {
            for (id, key) in keys { all["\(id.accessibility.rawValue) \(id.generation)"] = key }
        }
    }

    /// A keychain whose keys are known, whose ak and aku have an older class key that a damaged row keeps in the keybag, and which
    /// was changed once more with new class keys.
    private func withKnownSecrets(
        holder: KeyHolderSelection, _ body: (_ home: String, _ reader: SessionProcess, KnownSecrets) throws -> Void
    ) throws {
        try withLocalKeychain(holder: holder) { keychain, home in
            try keychain.addItemOfEachClass()
            for accessibility in [Accessibility.whenUnlocked, .whenUnlockedThisDeviceOnly] {
                try keychain.addItem("damaged \(accessibility.rawValue)", "lost", accessibility)
            }
            // Open from before the passcode on: it has had the keys of that time.
            let reader = try SessionProcess(home: home, holder: holder)
            #expect(try reader.status(of: "read ak") == .success)
            var secrets = KnownSecrets()
            do {
                let original = try OpenedStore(home: home)
                secrets.add(try original.classKeys(of: original.keybag))
            }
            let lastTwo = "SELECT number FROM items ORDER BY number DESC LIMIT 2"
            try RawDatabase(home + "/keychain.db").execute(
                "UPDATE items SET sealed_attributes = zeroblob(length(sealed_attributes)) WHERE number IN (\(lastTwo))")
            try keychain.set(Self.passcode)
            try secrets.addPresent(home, Self.passcode)
            try keychain.addItem("akpu", "secret of akpu", .whenPasscodeSetThisDeviceOnly)
            try keychain.changePasscode(
                from: try Passcode(text: Self.passcode), to: try Passcode(text: Self.passcode), rotatingKeys: true,
                autoLock: .standard)
            try secrets.addPresent(home, Self.passcode)
            #expect(secrets.all["ak 1"] != nil && secrets.all["ak 3"] != nil && secrets.all["akpu 3"] != nil)
            try body(home, reader, secrets)
        }
    }

    @Test(
        "An idle process that has read items of every class, the one that unlocked, and one that was there before the passcode",
        .enabled(if: KernelKeyringTool.keyringObstacle == nil, "\(KernelKeyringTool.keyringObstacle ?? "")"))
    func kernelHolder() throws {
        try withKnownSecrets(holder: .automatic) { home, reader, secrets in
            let unlocker = try SessionProcess(home: home)
            #expect(try unlocker.status(of: "unlock \(Self.passcode)") == .success)
            for accessibility in Accessibility.allCases {
                for process in [reader, unlocker] {
                    #expect(try process.status(of: "read \(accessibility.rawValue)") == .success)
                }
            }
            #expect(try SessionProcess(home: home).status(of: "lock") == .success)
            sleep(2)
            for process in [reader, unlocker] {
                try expectLockedMemory(of: process, secrets)
                #expect(try process.status(of: "read ak") == .interactionNotAllowed)
            }
        }
    }

    @Test("A process that holds the keys in its own memory, and is idle, loses them when another one locks")
    func processMemoryHolder() throws {
        try withKnownSecrets(holder: .processMemory) { home, reader, secrets in
            #expect(try reader.status(of: "unlock \(Self.passcode)") == .success)
            for accessibility in Accessibility.allCases {
                #expect(try reader.status(of: "read \(accessibility.rawValue)") == .success)
            }
            let held = try MemorySearch(secrets: secrets.all).namesFound(in: reader.processID)
            #expect(held.isSuperset(of: ["ak 3", "aku 3", "akpu 3", "ck 3", "payload unlocked 3"]), "the search must be able to find")
            #expect(try SessionProcess(home: home, holder: .processMemory).status(of: "lock") == .success)
            sleep(2)
            try expectLockedMemory(of: reader, secrets)
            #expect(try reader.status(of: "read ak") == .interactionNotAllowed)
        }
    }

    /// Nothing that the lock takes away; but the device-bound keys, and a key planted now: so it is the memory of that process.
    private func expectLockedMemory(of process: SessionProcess, _ secrets: KnownSecrets) throws {
        let planted = (0..<32).map { _ in UInt8.random(in: 0...255) }
        let digits = planted.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
        var searched = secrets.all
        searched["planted"] = planted
        let search = MemorySearch(secrets: searched)
        #expect(try !search.namesFound(in: process.processID).contains("planted"))
        #expect(try process.status(of: "plant \(digits)") == .success)
        let found = try search.namesFound(in: process.processID)
        #expect(found.contains("planted"))
        #expect(found.isSuperset(of: secrets.deviceBound) && secrets.deviceBound.count == 2)
        #expect(found.isDisjoint(with: secrets.lockBound), "\(found.intersection(secrets.lockBound).sorted())")
    }
}

extension MemorySearchTests.KnownSecrets {
    /// All that the passcode opens now.
    fileprivate mutating func addPresent(_ home: String, _ passcode: String) throws {
        let opened = try OpenedStore(home: home)
        add(try opened.classKeys(of: opened.unlockedKeys(passcode)))
        let generation = opened.keybag.currentPasscodeGeneration
        all["payload unlocked \(generation)"] = try opened.payload(for: .unlocked, passcode)
    }
}
