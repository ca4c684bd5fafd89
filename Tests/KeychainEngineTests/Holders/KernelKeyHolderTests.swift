// SPDX-License-Identifier: Apache-2.0
import CKeychainShims
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import KeychainTesting
import Synchronization
import Testing

/// A store's place in the kernel's keyring for one test; empty again afterwards.
final class KernelKeys: Sendable {
    let storeID = StoreID(high: 0, low: .random(in: 0 ... .max))

    deinit {
        for slot in KeyHolderSlot.ofClassKeys {
            // What has come to its end cannot be removed, but replaced. Text and bytes are copied for the call.
            let serial = unsafe keychain_keyring_add(description(of: slot), [0], 1, 0)
            _ = keychain_keyring_invalidate(serial)
        }
    }

    func holder(
        epoch: ManualEpoch = ManualEpoch(), isInUserNamespace: Bool = false, time: any ContinuousTime = SystemContinuousTime()
    ) -> KernelKeyHolder {
        KernelKeyHolder(storeID: storeID, epochSource: epoch.source, isInUserNamespace: isInUserNamespace, time: time)
    }

    func description(of slot: KeyHolderSlot) -> String {
        "keychain:\(storeID.hexadecimal):\(slot.rawValue):0:0"
    }

    func serial(of slot: KeyHolderSlot = .unlocked) -> Int32? {
        // The text is copied for the call.
        let serial = unsafe keychain_keyring_search(description(of: slot))
        return serial > 0 ? serial : nil
    }

    /// Puts a key there that no holder has made.
    func plant(_ content: [UInt8], in slot: KeyHolderSlot = .unlocked) {
        // Text and bytes are copied for the call.
        let serial = unsafe keychain_keyring_add(description(of: slot), content, content.count, 0)
        #expect(serial > 0)
    }

    /// The kernel's own words about the key: number, flags, uses, time left, permission, description.
    func facts(of slot: KeyHolderSlot = .unlocked) throws -> [Substring] {
        // What was replaced may still be listed for a while, so the number tells. While other tests add and remove keys, the
        // list may leave one out that is there: it is looked at again.
        let serial = String(try #require(self.serial(of: slot)), radix: 16)
        for _ in 0..<1_000 {
            // Read to its end: a whole file at once would be the first part that the kernel gives of it.
            let list = try FileHandle(forReadingFrom: URL(filePath: "/proc/keys")).readToEnd() ?? Data()
            let all = String(decoding: list, as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
            if let facts = all.first(where: { $0[0].drop { $0 == "0" } == serial }) { return facts }
        }
        throw NotListed()
    }

    struct NotListed: Error {}

    func timeLeft(of slot: KeyHolderSlot = .unlocked) throws -> String { String(try facts(of: slot)[3]) }
}

/// What a test of the kernel's keyring needs, and a container may refuse.
enum KernelKeyringNeeds {
    static let keyring = KernelKeyHolder.isPossible

    static let keyringAsRoot = keyring && geteuid() == 0

    static let userNamespaces = keyring && (try? ChildProcess.run("unshare", ["-Ur", "true"]).ending) == .exited(0)
}

@Suite("Keys in the kernel's keyring", .enabled(if: KernelKeyringNeeds.keyring, "the kernel's keyring is refused here"))
struct KernelKeyHolderTests {
    private let keys = KernelKeys()

    @Test("A key is found under the store's and the slot's name and the keybag's generation, for its user to read and for nobody to change")
    func permission() throws {
        try keys.holder().hold([1], in: .firstUnlock, timeoutSeconds: nil)
        let facts = try keys.facts(of: .firstUnlock)
        #expect(facts[4] == "3f3b0000")
        #expect(facts[3] == "perm")
        #expect(facts.contains("user"))
        #expect(facts.contains("keychain:\(keys.storeID.hexadecimal):first-unlock:0:0:"))
    }

    @Test("Its content is a format, a time, a count of locks and the secret")
    func content() throws {
        try keys.holder().hold([0xAA, 0xBB], timeoutSeconds: 0x0102, lockEpoch: LockEpoch(rawValue: 0x0304_0000_0005))
        let serial = try #require(keys.serial())
        var content = [UInt8](repeating: 0, count: 100)
        // The kernel writes at most `count` bytes.
        let count = unsafe keychain_keyring_read(serial, &content, content.count)
        #expect(Array(content.prefix(Int(count))) == [1, 2, 1, 0, 0, 5, 0, 0, 0, 4, 3, 0, 0, 0xAA, 0xBB])
    }

    @Test("A key that is replaced is gone, also where somebody has linked it elsewhere")
    func replaced() throws {
        let holder = keys.holder()
        try holder.hold([1], timeoutSeconds: nil)
        let serial = try #require(keys.serial())
        // The session keyring of the tests; it goes with them.
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

    @Test("A load begins the key's time anew, once a second at most")
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

    @Test("A short time begins anew after a fifth of it")
    func armedByUseOfShortTime() throws {
        let time = ManualTime()
        let holder = keys.holder(time: time)
        try holder.hold([1], timeoutSeconds: 2)
        let serial = try #require(keys.serial())
        // Longer than what the holder would set, so that the key lives and the difference shows.
        #expect(keychain_keyring_set_timeout(serial, 10_000) == 0)
        time.pass(seconds: 0.39)
        #expect(try holder.bytes(in: .unlocked) == [1])
        #expect(try keys.timeLeft().hasSuffix("h"))
        time.pass(seconds: 0.01)
        #expect(try holder.bytes(in: .unlocked) == [1])
        #expect(try !keys.timeLeft().hasSuffix("h"))
    }

    @Test("The first load of a process begins the time anew, whoever held the key")
    func armedByAnother() throws {
        try keys.holder().hold([1], timeoutSeconds: 10_000)
        #expect(keychain_keyring_set_timeout(try #require(keys.serial()), 600) == 0)
        #expect(try keys.holder().bytes(in: .unlocked) == [1])
        #expect(try keys.timeLeft().hasSuffix("h"))
    }

    @Test("Without a time none is set", arguments: [nil, 10_000] as [UInt32?])
    func replacedTime(seconds: UInt32?) throws {
        let holder = keys.holder()
        try holder.hold([1], timeoutSeconds: seconds == nil ? 10_000 : nil)
        try holder.hold([2], timeoutSeconds: seconds)
        #expect(try holder.bytes(in: .unlocked) == [2])
        #expect(try (keys.timeLeft() == "perm") == (seconds == nil))
    }

    @Test(
        "A key that no holder has made is removed, and nothing is held",
        arguments: [[0], [1], Array(repeating: 1, count: 13), [0] + Array(repeating: 7, count: 40)] as [[UInt8]])
    func malformed(content: [UInt8]) throws {
        keys.plant(content)
        #expect(try keys.holder().bytes(in: .unlocked) == nil)
        #expect(keys.serial() == nil)
    }

    @Test("A key of a newer version's making is left alone, and nothing is held until one is replaced")
    func newerFormat() throws {
        keys.plant([2] + Array(repeating: 7, count: 40))
        let holder = keys.holder()
        #expect(try holder.bytes(in: .unlocked) == nil)
        #expect(keys.serial() != nil)
        try holder.hold([1], timeoutSeconds: nil)
        #expect(try holder.bytes(in: .unlocked) == [1])
    }

    @Test(
        "What was held before a lock is not given out, and removed, wherever the lock came from",
        arguments: [LockExtent.whenUnlocked, .everything], [false, true])
    func locked(extent: LockExtent, isInUserNamespace: Bool) throws {
        let epoch = ManualEpoch()
        let holder = keys.holder(epoch: epoch, isInUserNamespace: isInUserNamespace)
        for slot in KeyHolderSlot.ofClassKeys { try holder.hold([1], in: slot, timeoutSeconds: nil, lockEpoch: epoch.source()) }
        #expect(try holder.bytes(in: .unlocked) == [1])
        epoch.lock(extent)
        #expect(try holder.bytes(in: .unlocked) == nil)
        #expect(keys.serial() == nil)
        #expect(try holder.bytes(in: .firstUnlock) == (extent == .everything ? nil : [1]))
        try holder.hold([2], timeoutSeconds: nil, lockEpoch: epoch.source())
        #expect(try holder.bytes(in: .unlocked) == [2])
    }

    @Test("A count of locks that cannot be read is a failure", arguments: [false, true])
    func unreadableEpoch(isInUserNamespace: Bool) throws {
        let epoch = ManualEpoch()
        epoch.breakDown()
        let holder = keys.holder(epoch: epoch, isInUserNamespace: isInUserNamespace)
        try holder.hold([1], timeoutSeconds: nil)
        #expect(throws: KeychainFailure(.inputOutput, "")) { try holder.bytes(in: .unlocked) }
    }

    @Test("Every thread can load what one has held, with a holder that knows the key and with one that does not")
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
        while !thread.isFinished { Thread.sleep(forTimeInterval: 0.001) }
        #expect(found.withLock { $0 } == Array(repeating: [1, 2], count: 65))
    }

    @Test("Whoever loads while others hold and remove gets what was held, or nothing")
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

    @Test("More than one key of the kernel can take is refused, and what was there stays")
    func tooLarge() throws {
        let holder = keys.holder()
        try holder.hold([1], timeoutSeconds: nil)
        #expect(throws: KeychainFailure(.notAvailable, "")) {
            try holder.hold(Array(repeating: 2, count: 40_000), timeoutSeconds: nil)
        }
        #expect(try holder.bytes(in: .unlocked) == [1])
    }
}
