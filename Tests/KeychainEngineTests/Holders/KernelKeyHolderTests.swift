// SPDX-License-Identifier: Apache-2.0
import CKeychainShims
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

/// The keys of a store in the kernel's keyring, for one test; removed afterward.
final class KernelKeys: Sendable {
    let storeID = StoreID(high: 0, low: .random(in: 0 ... .max))

    deinit {
        for slot in KeyHolderSlot.allCases {
            // An expired key cannot be removed, but it can be replaced. Text and bytes are copied for the call.
            let serial = unsafe keychain_keyring_add(description(of: slot), [0], 1, 0)
            _ = keychain_keyring_invalidate(serial)
        }
    }

    func holder(
        isInUserNamespace: Bool = false, time: any ContinuousTime = SystemContinuousTime()
    ) -> KernelKeyHolder {
        KernelKeyHolder(storeID: storeID, isInUserNamespace: isInUserNamespace, time: time)
    }

    func description(of slot: KeyHolderSlot) -> String {
        "keychain:\(storeID.hexadecimal):\(slot.rawValue):0:0"
    }

    func serial(of slot: KeyHolderSlot = .unlocked) -> Int32? {
        // The text is copied for the call.
        let serial = unsafe keychain_keyring_search(description(of: slot))
        return serial > 0 ? serial : nil
    }

    /// Adds a key that no holder created.
    func plant(_ content: [UInt8], in slot: KeyHolderSlot = .unlocked) {
        // Text and bytes are copied for the call.
        let serial = unsafe keychain_keyring_add(description(of: slot), content, content.count, 0)
        #expect(serial > 0)
    }

    /// The kernel's description of the key: number, flags, uses, time left, permissions, description.
    func facts(of slot: KeyHolderSlot = .unlocked) throws -> [Substring] {
        // Replaced keys may still be listed for a while, so the serial numbers are compared. While other tests add and remove
        // keys, the list may omit an existing one, so it is read again.
        let serial = String(try #require(self.serial(of: slot)), radix: 16)
        for _ in 0..<1_000 {
            // Read to the end: one read returns only the first part of this file.
            let list = try FileHandle(forReadingFrom: URL(filePath: "/proc/keys")).readToEnd() ?? Data()
            let all = String(decoding: list, as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
            if let facts = all.first(where: { $0[0].drop { $0 == "0" } == serial }) { return facts }
        }
        throw NotListed()
    }

    struct NotListed: Error {}

    func timeLeft(of slot: KeyHolderSlot = .unlocked) throws -> String { String(try facts(of: slot)[3]) }
}

@Suite("Keys in the kernel's keyring", .requiresKernelKeyring)
struct KernelKeyHolderTests {
    private let keys = KernelKeys()

    @Test("A key is named by store, slot and keybag generation; its user can read it, and no one can change it")
    func permission() throws {
        try keys.holder().hold([1], in: .firstUnlock, timeoutSeconds: nil)
        let facts = try keys.facts(of: .firstUnlock)
        #expect(facts[4] == "3f3b0000")
        #expect(facts[3] == "perm")
        #expect(facts.contains("user"))
        #expect(facts.contains("keychain:\(keys.storeID.hexadecimal):first-unlock:0:0:"))
    }

    @Test("Its payload contains format, timeout, lock epoch and secret")
    func content() throws {
        try keys.holder().hold([0xAA, 0xBB], timeoutSeconds: 0x0102, lockEpoch: LockEpoch(rawValue: 0x0304_0000_0005))
        let serial = try #require(keys.serial())
        var content = [UInt8](repeating: 0, count: 100)
        // The kernel writes at most `count` bytes.
        let count = unsafe keychain_keyring_read(serial, &content, content.count)
        #expect(Array(content.prefix(Int(count))) == [1, 2, 1, 0, 0, 5, 0, 0, 0, 4, 3, 0, 0, 0xAA, 0xBB])
    }

    @Test("A replaced key is removed, also from other keyrings that link it")
    func replaced() throws {
        let holder = keys.holder()
        try holder.hold([1], timeoutSeconds: nil)
        let serial = try #require(keys.serial())
        // The session keyring of the tests, which ends with the process.
        let link = Process()
        link.executableURL = URL(filePath: "/usr/bin/env")
        link.arguments = ["keyctl", "link", "\(serial)", "@s"]
        try link.run()
        link.waitUntilExit()
        #expect(link.terminationStatus == 0)
        try holder.hold([2], timeoutSeconds: nil)
        #expect(keys.serial() != serial)
        // No bytes are written: there is no room for any.
        let answer = keychain_keyring_read(serial, nil, 0)
        #expect(answer < 0)
    }

    @Test("A load restarts the key's timeout, at most once per second")
    func armedByUse() throws {
        let time = ManualTime()
        let holder = keys.holder(time: time)
        try holder.hold([1], timeoutSeconds: 10_000)
        let serial = try #require(keys.serial())
        #expect(try keys.timeLeft().hasSuffix("h"))
        #expect(keychain_keyring_set_timeout(serial, 600) == 0)
        time.pass(seconds: 0.9)
        #expect(try holder.bytes(in: .unlocked) == [1])
        #expect(try keys.timeLeft().hasSuffix("m"))
        time.pass(seconds: 0.1)
        #expect(try holder.bytes(in: .unlocked) == [1])
        #expect(try keys.timeLeft().hasSuffix("h"))
    }

    @Test("A short timeout restarts after a fifth of it")
    func armedByUseOfShortTime() throws {
        let time = ManualTime()
        let holder = keys.holder(time: time)
        try holder.hold([1], timeoutSeconds: 2)
        let serial = try #require(keys.serial())
        // Longer than the timeout that the holder sets, so that the key does not expire and the difference is visible.
        #expect(keychain_keyring_set_timeout(serial, 10_000) == 0)
        time.pass(seconds: 0.39)
        #expect(try holder.bytes(in: .unlocked) == [1])
        #expect(try keys.timeLeft().hasSuffix("h"))
        time.pass(seconds: 0.01)
        #expect(try holder.bytes(in: .unlocked) == [1])
        #expect(try !keys.timeLeft().hasSuffix("h"))
    }

    @Test("The first load of a process restarts the timeout of a key that any process stored")
    func armedByAnother() throws {
        try keys.holder().hold([1], timeoutSeconds: 10_000)
        #expect(keychain_keyring_set_timeout(try #require(keys.serial()), 600) == 0)
        #expect(try keys.holder().bytes(in: .unlocked) == [1])
        #expect(try keys.timeLeft().hasSuffix("h"))
    }

    @Test("Without a timeout none is set", arguments: [nil, 10_000] as [UInt32?])
    func replacedTime(seconds: UInt32?) throws {
        let holder = keys.holder()
        try holder.hold([1], timeoutSeconds: seconds == nil ? 10_000 : nil)
        try holder.hold([2], timeoutSeconds: seconds)
        #expect(try holder.bytes(in: .unlocked) == [2])
        #expect(try (keys.timeLeft() == "perm") == (seconds == nil))
    }

    @Test(
        "A key that no holder created is removed, and no key is returned",
        arguments: [[0], [1], Array(repeating: 1, count: 13), [0] + Array(repeating: 7, count: 40)] as [[UInt8]])
    func malformed(content: [UInt8]) throws {
        keys.plant(content)
        #expect(try keys.holder().bytes(in: .unlocked) == nil)
        #expect(keys.serial() == nil)
    }

    @Test("A key of a newer version is not changed, and no key is returned until it is replaced")
    func newerFormat() throws {
        keys.plant([2] + Array(repeating: 7, count: 40))
        let holder = keys.holder()
        #expect(try holder.bytes(in: .unlocked) == nil)
        #expect(keys.serial() != nil)
        try holder.hold([1], timeoutSeconds: nil)
        #expect(try holder.bytes(in: .unlocked) == [1])
    }

    @Test(
        "Keys from before a lock by any process are removed and not returned",
        arguments: [LockExtent.whenUnlocked, .everything], [false, true])
    func locked(extent: LockExtent, isInUserNamespace: Bool) throws {
        let holder = keys.holder(isInUserNamespace: isInUserNamespace)
        for slot in KeyHolderSlot.ofClassKeys { try holder.hold([1], in: slot, timeoutSeconds: nil) }
        #expect(try holder.bytes(in: .unlocked) == [1])
        let epoch = KeyHolderContract.lockEpoch.advanced(by: extent)
        #expect(try holder.bytes(in: .unlocked, at: epoch) == nil)
        #expect(keys.serial() == nil)
        #expect(try holder.bytes(in: .firstUnlock, at: epoch) == (extent == .everything ? nil : [1]))
        try holder.hold([2], timeoutSeconds: nil, lockEpoch: epoch)
        #expect(try holder.bytes(in: .unlocked, at: epoch) == [2])
    }

    @Test("Every thread can load a payload that another has held, with the same holder and with a new one")
    func threads() throws {
        let keys = keys
        let holder = keys.holder()
        let found = Mutex<[[UInt8]?]>([])
        let before = DispatchQueue(label: "a thread from before", attributes: .concurrent)
        before.sync {}
        let held = Result { try holder.hold([1, 2], timeoutSeconds: nil) }
        #expect(throws: Never.self) { try held.get() }
        DispatchQueue.concurrentPerform(iterations: 64) { index in
            let bytes = try? (index % 2 == 0 ? holder : keys.holder()).bytes(in: .unlocked)
            found.withLock { $0.append(bytes) }
        }
        let thread = Thread { found.withLock { $0.append(try? holder.bytes(in: .unlocked)) } }
        thread.start()
        #expect(waitUntil { thread.isFinished })
        #expect(found.withLock { $0 } == Array(repeating: [1, 2], count: 65))
    }

    @Test("A load during concurrent stores and removals returns a stored payload or nothing")
    func contention() throws {
        let keys = keys
        let holder = keys.holder()
        let isOver = Atomic(false)
        let strange = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 4) { index in
            do {
                guard index > 0 else {
                    defer { isOver.store(true, ordering: .sequentiallyConsistent) }
                    for _ in 0..<500 {
                        try holder.hold([1], timeoutSeconds: 600)
                        try keys.holder().hold([2], timeoutSeconds: 600)
                        try holder.remove(.unlocked)
                    }
                    return
                }
                let loader = index == 1 ? holder : keys.holder()
                while !isOver.load(ordering: .sequentiallyConsistent) {
                    let bytes = try loader.bytes(in: .unlocked)
                    if ![nil, [1], [2]].contains(bytes) { strange.withLock { $0.append("\(String(describing: bytes))") } }
                }
            } catch {
                strange.withLock { $0.append("\(error)") }
            }
        }
        #expect(strange.withLock { $0 } == [])
        #expect(try holder.bytes(in: .unlocked) == nil)
    }

    @Test("A removal succeeds unless there are still keys after eight rounds", arguments: 0...9)
    func rounds(filledCount: Int) throws {
        // Another process adds a key before each of the first rounds.
        var remaining = filledCount
        var removed: [Int32] = []
        let isEmptied = try KernelKeyring.removeAll {
            defer { remaining -= 1 }
            return remaining > 0 ? [Int32(remaining)] : []
        } invalidating: {
            removed.append($0)
        }
        #expect(isEmptied == (filledCount <= 8))
        #expect(removed.count == min(filledCount, 8))
    }

    @Test("A payload above the kernel's limit is rejected, and the previous key is kept")
    func tooLarge() throws {
        let holder = keys.holder()
        try holder.hold([1], timeoutSeconds: nil)
        #expect(throws: KeychainFailure(.notAvailable, "")) {
            try holder.hold(Array(repeating: 2, count: 40_000), timeoutSeconds: nil)
        }
        #expect(try holder.bytes(in: .unlocked) == [1])
    }
}
