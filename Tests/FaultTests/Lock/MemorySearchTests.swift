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

    /// A keychain whose keys are known, and which was changed once more with new class keys.
    ///
    /// Of so many of ak, aku and akpu the keybag keeps an older class key, for a damaged row: so the number of keys that are held
    /// together differs.
    private func withKnownSecrets(
        holder: KeyHolderSelection, olderKeyCount: Int,
        _ body: (_ home: String, _ reader: SessionProcess, _ setter: SessionProcess, KnownSecrets) throws -> Void
    ) throws {
        try withLocalKeychain(holder: holder) { keychain, home in
            try keychain.addItemOfEachClass()
            for accessibility in [Accessibility.whenUnlocked, .whenUnlockedThisDeviceOnly].prefix(olderKeyCount) {
                try keychain.addItem("damaged \(accessibility.rawValue)", "lost", accessibility)
                try Self.damageNewestRow(home)
            }
            // Open from before the passcode on: it has had the keys of that time.
            let reader = try SessionProcess(home: home, holder: holder)
            #expect(try reader.status(of: "read ak") == .success)
            var secrets = KnownSecrets()
            do {
                let original = try OpenedStore(home: home)
                secrets.add(try original.classKeys(of: original.keybag))
            }
            let setter = try SessionProcess(home: home, holder: holder)
            #expect(try setter.status(of: "set \(Self.passcode)") == .success)
            try secrets.addPresent(home, Self.passcode)
            if olderKeyCount > 2 {
                #expect(try setter.status(of: "add damaged akpu") == .success)
                try Self.damageNewestRow(home)
            }
            #expect(try setter.status(of: "add akpu akpu") == .success)
            #expect(try setter.status(of: "rotate \(Self.passcode) \(Self.passcode)") == .success)
            try secrets.addPresent(home, Self.passcode)
            #expect(secrets.all["ak 1"] != nil && secrets.all["ak 3"] != nil && secrets.all["akpu 3"] != nil)
            let keys = try OpenedStore(home: home).unlockedKeys(Self.passcode)
            let kept: [(Accessibility, UInt32)] = [
                (.whenUnlocked, 1), (.whenUnlockedThisDeviceOnly, 1), (.whenPasscodeSetThisDeviceOnly, 2),
            ]
            for (index, (accessibility, generation)) in kept.enumerated() {
                #expect((keys.availability(of: accessibility, generation: generation) == .available) == (index < olderKeyCount))
            }
            try body(home, reader, setter, secrets)
        }
    }

    private static func damageNewestRow(_ home: String) throws {
        try RawDatabase(home + "/keychain.db").execute(
            "UPDATE items SET sealed_attributes = zeroblob(length(sealed_attributes)) WHERE number = (SELECT max(number) FROM items)")
    }

    @Test(
        """
        Idle processes: one that read items of every class and was there before the passcode, one that read a single item, one that \
        only asked for the state, those that set the passcode, unlocked and locked
        """,
        .enabled(if: KernelKeyringTool.keyringObstacle == nil, "\(KernelKeyringTool.keyringObstacle ?? "")"),
        arguments: 0...3)
    func kernelHolder(olderKeyCount: Int) throws {
        try withKnownSecrets(holder: .automatic, olderKeyCount: olderKeyCount) { home, reader, setter, secrets in
            // Idle from then on: a later call would write over what this one has left behind.
            let unlocker = try SessionProcess(home: home)
            #expect(try unlocker.status(of: "unlock \(Self.passcode)") == .success)
            for accessibility in Accessibility.allCases {
                #expect(try reader.status(of: "read \(accessibility.rawValue)") == .success)
            }
            let asker = try SessionProcess(home: home)
            #expect(try asker.ask("state").text == "unlocked")
            let readerOfOne = try SessionProcess(home: home)
            #expect(try readerOfOne.status(of: "read aku") == .success)
            let locker = try SessionProcess(home: home)
            #expect(try locker.status(of: "lock") == .success)
            sleep(2)
            for process in [reader, setter, unlocker, asker, readerOfOne, locker] {
                try expectLockedMemory(of: process, secrets)
                #expect(try process.status(of: "read ak") == .interactionNotAllowed)
            }
        }
    }

    @Test("A process that holds the keys in its own memory, and is idle, loses them when another one locks", arguments: 0...3)
    func processMemoryHolder(olderKeyCount: Int) throws {
        try withKnownSecrets(holder: .processMemory, olderKeyCount: olderKeyCount) { home, reader, setter, secrets in
            #expect(try reader.status(of: "unlock \(Self.passcode)") == .success)
            for accessibility in Accessibility.allCases {
                #expect(try reader.status(of: "read \(accessibility.rawValue)") == .success)
            }
            let held = try MemorySearch(secrets: secrets.all).namesFound(in: reader.processID)
            #expect(held.isSuperset(of: ["ak 3", "aku 3", "akpu 3", "ck 3", "payload unlocked 3"]), "the search must be able to find")
            #expect(try SessionProcess(home: home, holder: .processMemory).status(of: "lock") == .success)
            sleep(2)
            for process in [reader, setter] {
                try expectLockedMemory(of: process, secrets)
                #expect(try process.status(of: "read ak") == .interactionNotAllowed)
                let held = try MemorySearch(secrets: secrets.all).namesFound(in: process.processID)
                #expect(held.isSuperset(of: ["ck 3", "cku 3"]))
            }

            #expect(try SessionProcess(home: home, holder: .processMemory).status(of: "lock-all") == .success)
            sleep(2)
            for process in [reader, setter] {
                let held = try MemorySearch(secrets: secrets.all).namesFound(in: process.processID)
                #expect(held == secrets.deviceBound)
            }
        }
    }

    @Test("A page that cannot be read is counted, and what comes after it is searched")
    func unreadablePage() throws {
        try withTemporaryDirectory { directory in
            let pageByteCount = 4_096
            let secret = (0..<32).map { _ in UInt8.random(in: 0...255) }
            let path = directory + "/file"
            try Data(secret + Array(repeating: 0, count: pageByteCount - secret.count)).write(to: URL(filePath: path))
            let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
            try #require(file >= 0)
            defer { close(file) }
            // Two pages that the file does not have lie behind the one that it has.
            let region = unsafe mmap(nil, 3 * pageByteCount, PROT_READ, MAP_PRIVATE, file, 0)
            try #require(unsafe region != MAP_FAILED)
            defer { unsafe munmap(region, 3 * pageByteCount) }
            let finding = try MemorySearch(secrets: ["mapped": secret]).run(on: getpid())
            #expect(finding.unreadableByteCount >= 2 * pageByteCount)
            #expect(finding.searchedByteCount >= pageByteCount)
            #expect(finding.names == ["mapped"])
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
        let finding = try search.run(on: process.processID)
        #expect(finding.searchedByteCount > finding.unreadableByteCount, "\(finding)")
        let found = finding.names
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
