// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import Keybag
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("After a lock, no process has the locked class keys in memory", .blocking)
struct MemorySearchTests {
    private static let passcode = "swordfish"

    /// Keys to search for, by name.
    fileprivate struct KnownSecrets {
        var all: [String: [UInt8]] = [:]
        /// The keys of ak, aku, and akpu, which a lock removes, and the holder's payload that contains them.
        var lockBound: Set<String> { Set(all.keys.filter { $0.hasPrefix("ak") || $0.hasPrefix("payload unlocked") }) }
        var deviceBound: Set<String> { Set(all.keys.filter { $0.hasPrefix("dk") }) }

        mutating func add(_ keys: [ClassKeyID: [UInt8]]) {
            for (id, key) in keys { all["\(id.accessibility.rawValue) \(id.generation)"] = key }
        }
    }

    /// Creates a keychain with known keys, whose class keys have been rotated.
    ///
    /// The keybag keeps an older class key for `olderKeyCount` of ak, aku, and akpu, because of a damaged row. So the number of keys that
    /// are held together differs.
    private func withKnownSecrets(
        holder: KeyHolderSelection, olderKeyCount: Int,
        _ body: (_ home: String, _ reader: SessionProcess, _ setter: SessionProcess, KnownSecrets) throws -> Void
    ) throws {
        try withLocalKeychain(holder: holder) { keychain, home in
            var damaged: [Int] = []
            try keychain.addItemOfEachClass()
            for accessibility in [ItemAccessibility.whenUnlocked, .whenUnlockedThisDeviceOnly].prefix(olderKeyCount) {
                try keychain.addItem("damaged \(accessibility.rawValue)", "lost", accessibility)
                damaged.append(try Self.newestRow(home))
            }
            try Self.damage(damaged, home)
            // Opened before the passcode was set, so it has had the keys of that time.
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
            // Beside damaged rows nothing can be added.
            try Self.damage(damaged, home, undoing: true)
            if olderKeyCount > 2 {
                #expect(try setter.status(of: "add damaged akpu") == .success)
                damaged.append(try Self.newestRow(home))
            }
            #expect(try setter.status(of: "add akpu akpu") == .success)
            try Self.damage(damaged, home)
            #expect(try setter.status(of: "rotate \(Self.passcode) \(Self.passcode)") == .success)
            try secrets.addPresent(home, Self.passcode)
            #expect(secrets.all["ak 1"] != nil && secrets.all["ak 3"] != nil && secrets.all["akpu 3"] != nil)
            let keys = try OpenedStore(home: home).unlockedKeys(Self.passcode)
            let kept: [(ItemAccessibility, UInt32)] = [
                (.whenUnlocked, 1), (.whenUnlockedThisDeviceOnly, 1), (.whenPasscodeSetThisDeviceOnly, 2),
            ]
            for (index, (accessibility, generation)) in kept.enumerated() {
                #expect((keys.availability(of: accessibility, generation: generation) == .available) == (index < olderKeyCount))
            }
            try body(home, reader, setter, secrets)
        }
    }

    private static func newestRow(_ home: String) throws -> Int {
        try RawDatabase(home + "/keychain.db").integer("SELECT max(number) FROM items")
    }

    /// Moves the first byte of the rows' attributes to the end, or back.
    private static func damage(_ numbers: [Int], _ home: String, undoing: Bool = false) throws {
        let moved =
            undoing
            ? "substr(sealed_attributes, -1) || substr(sealed_attributes, 1, length(sealed_attributes) - 1)"
            : "substr(sealed_attributes, 2) || substr(sealed_attributes, 1, 1)"
        for number in numbers {
            try RawDatabase(home + "/keychain.db").execute(
                "UPDATE items SET sealed_attributes = CAST(\(moved) AS BLOB) WHERE number = \(number)")
        }
    }

    @Test(
        """
        Idle processes lose the keys: a reader of every class from before the passcode, a reader of one item, one that only queried \
        the state, and those that set the passcode, unlocked, and locked
        """,
        .requiresKernelKeyring,
        arguments: Scale.pick([3], full: Array(0...3)))
    func kernelHolder(olderKeyCount: Int) throws {
        try withKnownSecrets(holder: .automatic, olderKeyCount: olderKeyCount) { home, reader, setter, secrets in
            var secrets = secrets
            try secrets.addHeldPayload(home, of: "setter")
            // Idle from then on: a later call would overwrite the memory that this one used.
            let unlocker = try SessionProcess(home: home)
            #expect(try unlocker.status(of: "unlock \(Self.passcode)") == .success)
            try secrets.addHeldPayload(home, of: "unlocker")
            for accessibility in ItemAccessibility.allCases {
                #expect(try reader.status(of: "read \(accessibility.rawValue)") == .success)
            }
            let asker = try SessionProcess(home: home)
            #expect(try asker.ask("state").text == "unlocked")
            let readerOfOne = try SessionProcess(home: home)
            #expect(try readerOfOne.status(of: "read aku") == .success)
            let locker = try SessionProcess(home: home)
            #expect(try locker.status(of: "lock") == .success)
            for process in [reader, setter, unlocker, asker, readerOfOne, locker] {
                try waitUntilKeysAreGone(from: process, secrets)
                try expectLockedMemory(of: process, secrets)
                #expect(try process.status(of: "read ak") == .interactionNotAllowed)
            }
        }
    }

    @Test(
        "An idle process that holds the keys in its own memory loses them when another process locks",
        arguments: Scale.pick([0], full: Array(0...3)))
    func processMemoryHolder(olderKeyCount: Int) throws {
        try withKnownSecrets(holder: .processMemory, olderKeyCount: olderKeyCount) { home, reader, setter, secrets in
            #expect(try reader.status(of: "unlock \(Self.passcode)") == .success)
            for accessibility in ItemAccessibility.allCases {
                #expect(try reader.status(of: "read \(accessibility.rawValue)") == .success)
            }
            // The holder has them sealed.
            try expectLockedMemory(of: reader, secrets)
            #expect(try SessionProcess(home: home, holder: .processMemory).status(of: "lock") == .success)
            for process in [reader, setter] {
                try waitUntilKeysAreGone(from: process, secrets)
                try expectLockedMemory(of: process, secrets)
                #expect(try process.status(of: "read ak") == .interactionNotAllowed)
                #expect(try process.ask("read ck").text == "secret of ck")
            }

            #expect(try SessionProcess(home: home, holder: .processMemory).status(of: "lock-all") == .success)
            for process in [reader, setter] {
                let search = MemorySearch(secrets: secrets.all)
                try waitUntil(withinSeconds: 30) {
                    try search.namesFound(in: process.processID, .writable) == secrets.deviceBound
                }
                #expect(try search.namesFound(in: process.processID) == secrets.deviceBound)
            }
        }
    }

    @Test("A page that cannot be read is counted, and the pages after it are searched")
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

    /// Waits for a process to notice the lock: its watcher looks once a second.
    ///
    /// The assertions that follow search all memory and decide, so that a process that keeps a key fails them.
    private func waitUntilKeysAreGone(from process: SessionProcess, _ secrets: KnownSecrets) throws {
        let search = MemorySearch(secrets: secrets.all.filter { secrets.lockBound.contains($0.key) })
        try waitUntil(withinSeconds: 30) { try search.namesFound(in: process.processID, .writable).isEmpty }
    }

    /// Expects no locked key, but the device-bound keys and a key planted now, which prove that the search reads the process's memory.
    private func expectLockedMemory(of process: SessionProcess, _ secrets: KnownSecrets) throws {
        let planted = (0..<32).map { _ in UInt8.random(in: 0...255) }
        let digits = planted.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
        var searched = secrets.all
        searched["planted"] = planted
        let search = MemorySearch(secrets: searched)
        #expect(try MemorySearch(secrets: ["planted": planted]).namesFound(in: process.processID).isEmpty)
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
    /// Adds every key that the passcode opens.
    fileprivate mutating func addPresent(_ home: String, _ passcode: String) throws {
        let opened = try OpenedStore(home: home)
        add(try opened.classKeys(of: opened.unlockedKeys(passcode)))
    }

    /// Adds the sealed keys that the kernel's keyring has now: together with the device secret, they are keys.
    fileprivate mutating func addHeldPayload(_ home: String, of name: String) throws {
        let payload = try #require(try OpenedStore(home: home).heldPayload(.unlocked))
        // Without the format and the nonce.
        all["payload unlocked by \(name)"] = Array(payload.dropFirst(13))
    }
}

@Suite("Passcodes and the device secret do not stay in memory", .blocking)
struct PasscodeMemoryTests {
    /// A random passcode.
    ///
    /// The child gets it as hexadecimal digits, so that its input does not contain the passcode itself.
    private struct MarkedPasscode {
        let bytes = (0..<32).map { _ in UInt8.random(in: UInt8(ascii: "!")...UInt8(ascii: "~")) }
        var digits: String { bytes.map { String($0, radix: 16) }.joined() }
    }

    @Test(
        "After setting, changing, unlocking, a wrong passcode, and locking, neither a passcode nor the device secret is in memory",
        arguments: [KeyHolderSelection.automatic, .processMemory])
    func sessions(holder: KeyHolderSelection) throws {
        try withLocalKeychain(holder: holder) { keychain, home in
            try keychain.addItemOfEachClass()
            let old = MarkedPasscode()
            let new = MarkedPasscode()
            let wrong = MarkedPasscode()
            let setter = try SessionProcess(home: home, holder: holder)
            #expect(try setter.status(of: "set-secret \(old.digits)") == .success)
            #expect(try setter.status(of: "change-secret \(old.digits) \(new.digits)") == .success)
            let unlocker = try SessionProcess(home: home, holder: holder)
            #expect(try unlocker.status(of: "unlock-secret \(wrong.digits)") == .authFailed)
            #expect(try unlocker.status(of: "unlock-secret \(new.digits)") == .success)
            #expect(try unlocker.ask("read ak").text == "secret of ak")
            let deviceSecret = try bytes(of: OpenedStore(home: home).deviceSecret)
            let search = MemorySearch(secrets: ["old": old.bytes, "new": new.bytes, "wrong": wrong.bytes, "device": deviceSecret])

            for process in [setter, unlocker] {
                try expectNoPasscode(in: process, search)
                #expect(try process.status(of: "lock") == .success)
                try expectNoPasscode(in: process, search)
            }
            // The search finds a passcode where there is one.
            #expect(try setter.status(of: "plant \(new.digits)") == .success)
            #expect(try search.namesFound(in: setter.processID).contains("new"))
        }
    }

    private func expectNoPasscode(in process: SessionProcess, _ search: MemorySearch) throws {
        let finding = try search.run(on: process.processID)
        #expect(finding.names.isEmpty, "\(finding.names.sorted())")
        #expect(finding.searchedByteCount > finding.unreadableByteCount)
    }

    private func bytes(of secret: borrowing SecretBytes) -> [UInt8] {
        // The bytes are copied within the closure.
        unsafe secret.withBytes { unsafe Array($0) }
    }
}

@Suite("Released presence keys do not stay in memory", .blocking)
struct PresenceMemoryTests {
    private static let passcode = "swordfish"

    private func bytes(of secret: borrowing SecretBytes) -> [UInt8] {
        // The bytes are copied within the closure.
        unsafe secret.withBytes { unsafe Array($0) }
    }

    private func withProtectedItem(
        _ body: (_ home: String, _ process: SessionProcess, _ privateKey: [UInt8], _ classKeys: [String: [UInt8]]) throws -> Void
    ) throws {
        try withLocalKeychain(holder: .processMemory) { keychain, home in
            try keychain.set(Self.passcode)
            try keychain.addItem("safe", "secret of safe", protectedBy: AccessControl(.whenUnlocked, constraint: .userPresence))
            let opened = try OpenedStore(home: home)
            let unlocked = try opened.unlockedKeys(Self.passcode)
            var keys: [String: [UInt8]] = [:]
            for (id, key) in try opened.classKeys(of: unlocked) where id.accessibility.isPasscodeProtected {
                keys["\(id.accessibility.rawValue) \(id.generation)"] = key
            }
            let process = try SessionProcess(home: home, holder: .processMemory)
            try body(home, process, bytes(of: try unlocked.presenceRelease(for: []).privateKey), keys)
        }
    }

    @Test("After a read with a prompt, neither the presence key nor a class key is in the process's memory")
    func oneRead() throws {
        try withProtectedItem { _, process, privateKey, classKeys in
            // The keychain was locked in this process: the passcode released the item's class key as well.
            #expect(try process.ask("read-as-person safe \(Self.passcode)").text == "secret of safe")
            let search = MemorySearch(secrets: classKeys.merging(["presence": privateKey]) { old, _ in old })
            let finding = try search.run(on: process.processID)
            #expect(finding.names.isEmpty, "\(finding.names.sorted())")
            #expect(finding.searchedByteCount > finding.unreadableByteCount)
        }
    }

    @Test("A context keeps the presence key only until it is invalidated or the keychain is locked", arguments: [true, false])
    func context(isInvalidated: Bool) throws {
        try withProtectedItem { home, process, privateKey, classKeys in
            #expect(try process.ask("read-as-person-with-context safe \(Self.passcode)").text == "secret of safe")
            let search = MemorySearch(secrets: classKeys.merging(["presence": privateKey]) { old, _ in old })
            #expect(try search.namesFound(in: process.processID).contains("presence"))
            var left: Set<String> = []
            if isInvalidated {
                #expect(try process.status(of: "invalidate-context") == .success)
                left = try search.namesFound(in: process.processID)
            } else {
                #expect(try SessionProcess(home: home, holder: .processMemory).status(of: "lock") == .success)
                // The watcher of the process notices a lock by another process within a second.
                try waitUntil(withinSeconds: 30) {
                    left = try search.namesFound(in: process.processID)
                    return left.isEmpty
                }
            }
            #expect(left.isEmpty, "\(left.sorted())")
        }
    }
}
