// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Keys in the process's memory")
struct ProcessMemoryKeyHolderTests {
    private let time = ManualTime()
    private let epoch = ManualEpoch()
    private let keys: ProcessMemoryKeys
    private let storeID = StoreID.random()

    init() {
        keys = ProcessMemoryKeys(time: time)
    }

    private var holder: ProcessMemoryKeyHolder { ProcessMemoryKeyHolder(storeID: storeID, epochSource: epoch.source, keys: keys) }

    /// Stores keys in both slots.
    private func unlock(timeoutSeconds: UInt32? = nil) throws {
        for slot in KeyHolderSlot.ofClassKeys {
            try holder.hold([1, 2, 3], in: slot, timeoutSeconds: timeoutSeconds, lockEpoch: epoch.source())
        }
    }

    private var heldSlots: [KeyHolderSlot] { KeyHolderSlot.ofClassKeys.filter { keys.isHolding($0, of: storeID) } }

    @Test("After a lock by another process a load returns nothing, and the keys are wiped from memory")
    func lockedElsewhere() throws {
        try unlock()
        epoch.lock(.whenUnlocked)
        #expect(try holder.bytes(in: .unlocked, at: epoch.source()) == nil)
        #expect(try holder.bytes(in: .firstUnlock, at: epoch.source()) == [1, 2, 3])
        #expect(heldSlots == [.firstUnlock])
        epoch.lock(.everything)
        #expect(try holder.bytes(in: .firstUnlock, at: epoch.source()) == nil)
        #expect(heldSlots == [])
    }

    @Test("Keys from an unlock before a lock are not returned if they are stored after it")
    func lockedWhileUnlocking() throws {
        let before = try epoch.source()
        epoch.lock(.whenUnlocked)
        try holder.hold([1], timeoutSeconds: nil, lockEpoch: before)
        #expect(try holder.bytes(in: .unlocked, at: epoch.source()) == nil)
    }

    @Test("A load restarts the timeout")
    func armedByUse() throws {
        try unlock(timeoutSeconds: 60)
        for _ in 0..<3 {
            time.pass(seconds: 59.9)
            #expect(try holder.bytes(in: .unlocked) == [1, 2, 3])
        }
        time.pass(seconds: 60)
        #expect(try holder.bytes(in: .unlocked) == nil)
        #expect(!keys.isHolding(.unlocked, of: storeID))
    }

    @Test("The periodic check wipes keys after their timeout and after a lock of the store")
    func periodicCheck() throws {
        try unlock(timeoutSeconds: 60)
        time.pass(seconds: 59)
        #expect(keys.removeExpired())
        #expect(heldSlots == KeyHolderSlot.ofClassKeys)
        epoch.lock(.whenUnlocked)
        #expect(keys.removeExpired())
        #expect(heldSlots == [.firstUnlock])
        time.pass(seconds: 1)
        #expect(!keys.removeExpired())
        #expect(heldSlots == [])
    }

    @Test("If the lock epoch cannot be read for five seconds, the keys are removed")
    func epochUnreadable() throws {
        try unlock()
        let before = try epoch.source()
        epoch.breakDown()
        #expect(keys.removeExpired())
        time.pass(seconds: 4.9)
        #expect(keys.removeExpired())
        #expect(heldSlots == KeyHolderSlot.ofClassKeys)
        // A successful read in between restarts the five seconds.
        epoch.set(before)
        #expect(keys.removeExpired())
        epoch.breakDown()
        #expect(keys.removeExpired())
        time.pass(seconds: 4.9)
        #expect(keys.removeExpired())
        #expect(heldSlots == KeyHolderSlot.ofClassKeys)
        time.pass(seconds: 0.1)
        _ = keys.removeExpired()
        #expect(heldSlots == [])
    }

    @Test("An unlock during a check is not undone by the lock epoch that the check read before")
    func unlockDuringCheck() throws {
        let (epoch, keys, storeID) = (epoch, keys, storeID)
        // The check reads the old epoch; then another process locks, and this one unlocks.
        let disturbed = ProcessMemoryKeyHolder(
            storeID: storeID,
            epochSource: { () throws(KeychainFailure) in
                let before = try epoch.source()
                epoch.lock(.whenUnlocked)
                try ProcessMemoryKeyHolder(storeID: storeID, epochSource: epoch.source, keys: keys)
                    .hold([9], timeoutSeconds: nil, lockEpoch: epoch.source())
                return before
            }, keys: keys)
        try disturbed.hold([1], timeoutSeconds: nil, lockEpoch: epoch.source())
        #expect(keys.removeExpired())
        #expect(heldSlots == [.unlocked])
        #expect(try holder.bytes(in: .unlocked, at: epoch.source()) == [9])
    }

    @Test("A clock read just before a key was stored or used does not expire the key", arguments: ["look", "load"])
    func clockReadBefore(operation: String) throws {
        try unlock(timeoutSeconds: 60)
        time.turnBack(seconds: 1)
        if operation == "look" { #expect(keys.removeExpired()) } else { #expect(try holder.bytes(in: .unlocked) == [1, 2, 3]) }
        #expect(heldSlots == KeyHolderSlot.ofClassKeys)
    }

    @Test("A lock of one store does not affect the keys of another")
    func otherStore() throws {
        let other = ProcessMemoryKeyHolder(storeID: .random(), epochSource: ManualEpoch().source, keys: keys)
        try other.hold([4], timeoutSeconds: nil)
        try unlock()
        epoch.lock(.everything)
        #expect(keys.removeExpired())
        #expect(heldSlots == [])
        #expect(try other.bytes(in: .unlocked) == [4])
    }

    @Test("In an idle process, a thread wipes the keys after a lock")
    func watched() throws {
        let keys = ProcessMemoryKeys.shared
        try ProcessMemoryKeyHolder(storeID: storeID, epochSource: epoch.source).hold([1], timeoutSeconds: nil)
        #expect(keys.isHolding(.unlocked, of: storeID))
        epoch.lock(.whenUnlocked)
        #expect(waitUntil { !keys.isHolding(.unlocked, of: storeID) })
    }

    @Test("All holders of a store in one process share their keys; another process has none")
    func sharedInProcess() throws {
        let child = try ChildHolder(of: storeID, "processMemory")
        let first = ProcessMemoryKeyHolder(storeID: storeID, epochSource: epoch.source)
        try first.hold([1], timeoutSeconds: 60)
        #expect(try ProcessMemoryKeyHolder(storeID: storeID, epochSource: epoch.source).bytes(in: .unlocked) == [1])
        #expect(try child("load unlocked") == "nothing")
        try first.remove(.unlocked)
        #expect(!ProcessMemoryKeys.shared.isHolding(.unlocked, of: storeID))
        try child.end()
    }

    @Test("The watching thread runs only while keys are held")
    func watcherEnds() throws {
        let child = try ChildHolder(of: storeID, "processMemory")
        let before = try child("threads")
        for round in 1...2 {
            #expect(try child("hold unlocked text none") == "done")
            #expect(try child("hold first-unlock text none") == "done")
            let during = try child("threads")
            #expect(Int(during) == Int(before).map { $0 + 1 })
            #expect(try child("remove unlocked") == "done")
            // The upper half counts locks of everything.
            #expect(try child("epoch \(round << 32)") == "done")
            #expect(try waitUntil { try child("threads") == before })
        }
        try child.end()
    }
}
