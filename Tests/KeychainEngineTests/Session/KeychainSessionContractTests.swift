// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting
import Testing

@Suite("Every keychain keeps the rules of a keychain with a lock")
struct KeychainSessionContractTests {
    @Test("The keychain in a file", arguments: KeychainSessionContract.rules, [KeyHolderSelection.automatic, .processMemory])
    func fileKeychain(rule: KeychainSessionContract, holder: KeyHolderSelection) async throws {
        let violations = try await onThreadOfItsOwn {
            try withLocalKeychain(holder: holder) { keychain, home in
                let other = try LocalKeychain.cheaplyUnlocked(home: home, holder: holder)
                // The kernel ends a key's time up to a second late.
                let delay = holder == .processMemory ? 0.1 : 2
                let subject = KeychainSessionContract.Subject(keychain: keychain, other: other) { seconds in
                    Thread.sleep(forTimeInterval: Double(seconds) + delay)
                }
                return rule.violations(of: subject)
            }
        }
        #expect(violations == [])
    }

    /// What sleeps must not keep one of the few threads that all tests share.
    private func onThreadOfItsOwn<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
        }
    }

    private func memorySubject(_ fault: BrokenSession.Fault?) throws -> KeychainSessionContract.Subject {
        let keychain = try InMemoryKeychain()
        let other = keychain.sharedWithProgram(entitledTo: Entitlements(applicationIdentifier: "in-memory"))
        return KeychainSessionContract.Subject(
            keychain: BrokenSession(keychain.keychain, fault), other: BrokenSession(other.keychain, fault)
        ) { keychain.clock.advance(by: .seconds($0)) }
    }

    @Test("The keychain in memory", arguments: KeychainSessionContract.rules)
    func memoryKeychain(rule: KeychainSessionContract) throws {
        #expect(rule.violations(of: try memorySubject(nil)) == [])
    }

    @Test("A keychain that breaks a rule is found out", arguments: BrokenSession.Fault.allCases)
    func broken(fault: BrokenSession.Fault) throws {
        let violations = try KeychainSessionContract.rules.flatMap { $0.violations(of: try memorySubject(fault)) }
        #expect(violations != [])
    }
}
