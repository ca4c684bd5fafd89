// SPDX-License-Identifier: Apache-2.0
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTesting
import Testing

@Suite("Both key holders keep every rule of a key holder")
struct KeyHolderContractTests {
    private func memorySubject(_ fault: BrokenKeyHolder.Fault?? = nil) -> KeyHolderContract.Subject {
        let time = ManualTime()
        let keys = ProcessMemoryKeys(time: time)
        let storeID = StoreID.random()
        func holder() -> any KeyHolder {
            let good = ProcessMemoryKeyHolder(storeID: storeID, epochSource: ManualEpoch(KeyHolderContract.lockEpoch).source, keys: keys)
            return fault.map { BrokenKeyHolder(good: good, fault: $0) } ?? good
        }
        return KeyHolderContract.Subject(holder: holder(), other: holder()) { time.pass(seconds: Double($0) + 0.001) }
    }

    @Test("The process's memory", arguments: KeyHolderContract.rules)
    func processMemory(rule: KeyHolderContract) {
        #expect(rule.violations(of: memorySubject()) == [])
    }

    @Test(
        "The kernel's keyring", .enabled(if: KernelKeyringNeeds.keyring, "the kernel's keyring is refused here"),
        arguments: KeyHolderContract.rules, [false, true])
    func kernelKeyring(rule: KeyHolderContract, isInUserNamespace: Bool) {
        let keys = KernelKeys()
        let epoch = ManualEpoch(KeyHolderContract.lockEpoch)
        func holder() -> KernelKeyHolder { keys.holder(epoch: epoch, isInUserNamespace: isInUserNamespace) }
        // The kernel ends a key's time up to a second late.
        let subject = KeyHolderContract.Subject(holder: holder(), other: holder()) { sleep($0 + 2) }
        #expect(rule.violations(of: subject) == [])
    }

    @Test("A holder that breaks a rule is found out", arguments: BrokenKeyHolder.Fault.allCases)
    func broken(fault: BrokenKeyHolder.Fault) {
        #expect(KeyHolderContract.rules.contains { $0.violations(of: memorySubject(fault)) != [] })
    }

    @Test("A holder that does nothing wrong behind the same wrapper is not")
    func wrapped() {
        for rule in KeyHolderContract.rules { #expect(rule.violations(of: memorySubject(.some(nil))) == []) }
    }
}
