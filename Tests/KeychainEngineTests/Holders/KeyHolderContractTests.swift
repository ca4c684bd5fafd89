// SPDX-License-Identifier: Apache-2.0
import Contracts
import Glibc
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

/// A correct holder with one planted fault.
struct BrokenKeyHolder: KeyHolder {
    enum Fault: CaseIterable {
        case ignoresSlot, keepsRemoved, discardIgnoresTicket, discardDoesNothing, holdKeepsExistingSecret, dropsTimeout, neverExpires,
            alwaysExpires
        case shortensSecrets, reusesTicket, inspectionCountsAsUse
        case mixesGenerations, removesOneGeneration
        case ignoresEpochs, removesLaterEpoch, keepsEarlierEpoch
    }

    let good: any KeyHolder
    let fault: Fault?

    var kind: KeyHolderKind { good.kind }

    func forKeybag(_ mark: KeybagIdentity) -> any KeyHolder {
        BrokenKeyHolder(good: fault == .mixesGenerations ? good : good.forKeybag(mark), fault: fault)
    }

    func load(
        _ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> HeldSecret? {
        let purpose = fault == .inspectionCountsAsUse ? .use : purpose
        if fault == .keepsEarlierEpoch, lockEpoch != KeyHolderContract.lockEpoch { return nil }
        guard let held = try good.load(used(slot), for: purpose, lockEpoch: used(lockEpoch)) else {
            if fault == .removesLaterEpoch { try good.remove(slot) }
            return nil
        }
        let timeoutSeconds = fault == .dropsTimeout ? nil : held.timeoutSeconds
        let ticket = fault == .reusesTicket ? 1 : held.ticket
        // The bytes are copied within the closure.
        let secret = try unsafe held.secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
        return HeldSecret(secret: secret, ticket: ticket, timeoutSeconds: timeoutSeconds, lockEpoch: held.lockEpoch)
    }

    func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        if fault == .holdKeepsExistingSecret, let ticket = try good.load(slot)?.ticket { return ticket }
        let seconds = fault == .neverExpires ? nil : fault == .alwaysExpires ? timeoutSeconds ?? 1 : timeoutSeconds
        // The bytes are copied within the closure.
        let copy = try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in
            try unsafe SecretBytes(
                copying: UnsafeRawBufferPointer(rebasing: bytes.prefix(fault == .shortensSecrets ? 512 : bytes.count)))
        }
        return try good.hold(copy, in: used(slot), timeoutSeconds: seconds, lockEpoch: used(lockEpoch))
    }

    func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        switch fault {
        case .keepsRemoved: break
        case .removesOneGeneration:
            guard let ticket = try good.load(slot)?.ticket else { return }
            good.discard(slot, ticket: ticket)
        default: try good.remove(used(slot))
        }
    }

    func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        try good.removeOlder(used(slot))
    }

    func discard(_ slot: KeyHolderSlot, ticket: UInt64) {
        switch fault {
        case .discardIgnoresTicket: try? good.remove(slot)
        case .discardDoesNothing: break
        default: good.discard(used(slot), ticket: ticket)
        }
    }

    private func used(_ epoch: LockEpoch) -> LockEpoch { fault == .ignoresEpochs ? KeyHolderContract.lockEpoch : epoch }

    private func used(_ slot: KeyHolderSlot) -> KeyHolderSlot { fault == .ignoresSlot ? .unlocked : slot }
}

/// The lock epoch of a store, without the store.
final class ManualEpoch: Sendable {
    private let state: Mutex<Result<LockEpoch, KeychainFailure>>

    init(_ epoch: LockEpoch = KeyHolderContract.lockEpoch) {
        state = Mutex(.success(epoch))
    }

    var source: LockEpochSource {
        { () throws(KeychainFailure) in try self.state.withLock { $0 }.get() }
    }

    func lock(_ extent: LockExtent) {
        state.withLock { $0 = $0.map { $0.advanced(by: extent) } }
    }

    func breakDown() {
        state.withLock { $0 = .failure(KeychainFailure(.inputOutput, "the disk is gone")) }
    }

    func set(_ epoch: LockEpoch) {
        state.withLock { $0 = .success(epoch) }
    }
}

@Suite("Both key holders satisfy the contract of key holders")
struct KeyHolderContractTests {
    private func memorySubject(_ fault: BrokenKeyHolder.Fault?? = nil) -> KeyHolderContract.Subject {
        let time = ManualTime()
        let keys = ProcessMemoryKeys(time: time)
        let storeID = StoreID.random()
        func holder() -> any KeyHolder {
            let good = ProcessMemoryKeyHolder(storeID: storeID, epochSource: ManualEpoch().source, keys: keys)
            return fault.map { BrokenKeyHolder(good: good, fault: $0) } ?? good
        }
        return KeyHolderContract.Subject(holder: holder(), other: holder()) { time.pass(seconds: Double($0) + 0.001) }
    }

    @Test("The process's memory", arguments: KeyHolderContract.rules)
    func processMemory(rule: KeyHolderContract) {
        #expect(rule.violations(of: memorySubject()) == [])
    }

    @Test(
        "The kernel's keyring", .waitsForClock, .requiresKernelKeyring,
        arguments: KeyHolderContract.rules, [false, true])
    func kernelKeyring(rule: KeyHolderContract, isInUserNamespace: Bool) {
        let keys = KernelKeys()
        func holder() -> KernelKeyHolder { keys.holder(isInUserNamespace: isInUserNamespace) }
        let subject = KeyHolderContract.Subject(holder: holder(), other: holder()) { seconds in
            // The kernel expires keys up to two seconds late. Waiting ends when one has expired.
            let held = KeyHolderSlot.ofClassKeys.filter { keys.serial(of: $0) != nil }
            let end = ContinuousClock.now + .seconds(Double(seconds))
            waitUntil(withinSeconds: Double(seconds) + 2) {
                ContinuousClock.now > end && (held.isEmpty || held.contains { keys.serial(of: $0) == nil })
            }
        }
        #expect(rule.violations(of: subject) == [])
    }

    @Test("A holder that violates a rule fails", arguments: BrokenKeyHolder.Fault.allCases)
    func broken(fault: BrokenKeyHolder.Fault) {
        #expect(KeyHolderContract.rules.contains { $0.violations(of: memorySubject(fault)) != [] })
    }

    @Test("The same wrapper without a fault passes")
    func wrapped() {
        for rule in KeyHolderContract.rules { #expect(rule.violations(of: memorySubject(.some(nil))) == []) }
    }
}

@Suite("Selecting a key holder")
struct KeyHolderSelectionTests {
    private func kind(of selection: KeyHolderSelection) throws -> KeyHolderKind {
        try selection.makeHolder(storeID: .random(), epochSource: ManualEpoch().source).kind
    }

    @Test("Process memory is available everywhere")
    func processMemory() throws {
        #expect(try kind(of: .processMemory) == .processMemory)
    }

    @Test("The kernel's keyring is chosen where it is available", .requiresKernelKeyring)
    func kernelKeyring() throws {
        let expected: KeyHolderKind = CurrentProcess.isInInitialUserNamespace ? .kernelKeyring : .kernelKeyringOfUserNamespace
        #expect(try kind(of: .automatic) == expected)
        #expect(try kind(of: .kernelKeyring) == expected)
    }

    @Test("The initial user namespace maps every user to itself")
    func userNamespace() {
        #expect(CurrentProcess.isInInitialUserNamespace(uidMap: "         0          0 4294967295\n"))
        for map in ["         0       1000          1\n", "0 0 1\n1 1 4294967294\n", "0 0 4294967294", "", nil] {
            #expect(!CurrentProcess.isInInitialUserNamespace(uidMap: map))
        }
    }
}
