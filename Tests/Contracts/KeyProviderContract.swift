// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// The rules that every `KeyProvider` follows, as checks.
package enum KeyProviderContract {
    /// Checks a provider that is unlocked or has no passcode.
    ///
    /// - Returns: A sentence for each violation; empty if there is none.
    package static func violations(of provider: any KeyProvider, isPasscodeSet: Bool) -> [String] {
        var violations: [String] = []
        var seen: Set<[UInt8]> = []
        for accessibility in ItemAccessibility.allCases where isPasscodeSet || accessibility != .whenPasscodeSetThisDeviceOnly {
            let name = accessibility.rawValue
            do throws(KeychainFailure) {
                let generation = try provider.currentGeneration(for: accessibility)
                if try provider.currentGeneration(for: accessibility) != generation {
                    violations.append("\(name): the current generation changes between two calls")
                }
                if provider.availability(of: accessibility, generation: generation) != .available {
                    violations.append("\(name): the key of the current generation is not available")
                }
                let key = try providedKey(by: provider, accessibility, generation, &violations)
                if try providedKey(by: provider, accessibility, generation, &violations) != key {
                    violations.append("\(name): a second call provides another key")
                }
                if !seen.insert(key).inserted { violations.append("\(name): the key is the same as that of another class") }
                violations += violationsForAbsentGeneration(generation &+ 1_000, of: accessibility, by: provider)
                violations += violationsForThrowingBody(accessibility, generation, by: provider)
            } catch {
                violations.append("\(name): the key is not available: \(error)")
            }
        }
        if !isPasscodeSet { violations += violationsWithoutPasscode(by: provider) }
        return violations
    }

    private static func providedKey(
        by provider: any KeyProvider, _ accessibility: ItemAccessibility, _ generation: UInt32, _ violations: inout [String]
    ) throws(KeychainFailure) -> [UInt8] {
        var isRequested = false
        let bytes = try provider.withClassKey(for: accessibility, generation: generation) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            isRequested = key.accessibility == accessibility && key.generation == generation
            // The bytes are copied within the closure, to be compared.
            return unsafe key.secret.withBytes { unsafe Array($0) }
        }
        if !isRequested { violations.append("\(accessibility.rawValue): the key has another class or generation") }
        if bytes.count != ClassKey.byteCount { violations.append("\(accessibility.rawValue): the key has \(bytes.count) bytes") }
        return bytes
    }

    static func violationsForAbsentGeneration(
        _ generation: UInt32, of accessibility: ItemAccessibility, by provider: any KeyProvider
    ) -> [String] {
        var violations: [String] = []
        if provider.availability(of: accessibility, generation: generation) != .missing {
            violations.append("\(accessibility.rawValue): an unknown generation is not reported as missing")
        }
        let status = statusOfRequest(accessibility, generation, by: provider)
        if status != .decode { violations.append("\(accessibility.rawValue): requesting an unknown generation returns \(status.rawValue)") }
        return violations
    }

    private static func violationsForThrowingBody(
        _ accessibility: ItemAccessibility, _ generation: UInt32, by provider: any KeyProvider
    ) -> [String] {
        do throws(KeychainFailure) {
            try provider.withClassKey(for: accessibility, generation: generation) { _ throws(KeychainFailure) in
                throw KeychainFailure(.userCanceled, "thrown by the body")
            }
            return ["\(accessibility.rawValue): an error thrown by the body is lost"]
        } catch {
            return error.status == .userCanceled ? [] : ["\(accessibility.rawValue): an error thrown by the body is rethrown as \(error)"]
        }
    }

    private static func violationsWithoutPasscode(by provider: any KeyProvider) -> [String] {
        let accessibility = ItemAccessibility.whenPasscodeSetThisDeviceOnly
        var violations: [String] = []
        do throws(KeychainFailure) {
            _ = try provider.currentGeneration(for: accessibility)
            violations.append("akpu: has a generation while no passcode is set")
        } catch {
            if error.status != .authFailed { violations.append("akpu: requesting the generation without a passcode throws \(error)") }
        }
        if provider.availability(of: accessibility, generation: 1) == .available {
            violations.append("akpu: available while no passcode is set")
        }
        if statusOfRequest(accessibility, 1, by: provider) == .success { violations.append("akpu: provided while no passcode is set") }
        return violations
    }

    static func statusOfRequest(
        _ accessibility: ItemAccessibility, _ generation: UInt32, by provider: any KeyProvider
    ) -> KeychainStatus {
        do throws(KeychainFailure) {
            try provider.withClassKey(for: accessibility, generation: generation) { _ throws(KeychainFailure) in }
            return .success
        } catch {
            return error.status
        }
    }
}

extension KeyProviderContract {
    /// Checks a provider with a passcode that is locked or was never unlocked.
    ///
    /// - Returns: A sentence for each violation; empty if there is none.
    package static func violationsWhileLocked(of provider: any KeyProvider, isFirstUnlockDone: Bool) -> [String] {
        ItemAccessibility.allCases.flatMap { accessibility in
            do throws(KeychainFailure) {
                let generation = try provider.currentGeneration(for: accessibility)
                let violations =
                    isLocked(accessibility, isFirstUnlockDone: isFirstUnlockDone)
                    ? violationsForLocked(accessibility, generation, by: provider)
                    : violationsForAvailable(accessibility, generation, by: provider)
                return violations + violationsForAbsentGeneration(generation &+ 1_000, of: accessibility, by: provider)
            } catch {
                return ["\(accessibility.rawValue): the current generation is not available while locked: \(error)"]
            }
        }
    }

    private static func isLocked(_ accessibility: ItemAccessibility, isFirstUnlockDone: Bool) -> Bool {
        switch accessibility {
        case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: true
        case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: !isFirstUnlockDone
        case .always, .alwaysThisDeviceOnly: false
        }
    }

    private static func violationsForLocked(
        _ accessibility: ItemAccessibility, _ generation: UInt32, by provider: any KeyProvider
    ) -> [String] {
        var violations: [String] = []
        if provider.availability(of: accessibility, generation: generation) != .locked {
            violations.append("\(accessibility.rawValue): not reported as locked while locked")
        }
        var isProvided = false
        do throws(KeychainFailure) {
            try provider.withClassKey(for: accessibility, generation: generation) { _ throws(KeychainFailure) in isProvided = true }
            violations.append("\(accessibility.rawValue): requesting the key succeeds while locked")
        } catch {
            if error.status != .interactionNotAllowed {
                violations.append("\(accessibility.rawValue): requesting the key while locked throws \(error)")
            }
        }
        if isProvided { violations.append("\(accessibility.rawValue): the key is provided while locked") }
        return violations
    }

    private static func violationsForAvailable(
        _ accessibility: ItemAccessibility, _ generation: UInt32, by provider: any KeyProvider
    ) -> [String] {
        var violations: [String] = []
        if provider.availability(of: accessibility, generation: generation) != .available {
            violations.append("\(accessibility.rawValue): not reported as available, though the lock does not concern it")
        }
        let status = statusOfRequest(accessibility, generation, by: provider)
        if status != .success {
            violations.append("\(accessibility.rawValue): not provided, though the lock does not concern it: \(status.rawValue)")
        }
        return violations
    }
}

extension KeyProvider {
    /// Returns the availability at the lock epoch of the tests' holders.
    package func availability(of accessibility: ItemAccessibility, generation: UInt32) -> KeyAvailability {
        availability(of: accessibility, generation: generation, lockEpoch: KeyHolderContract.lockEpoch)
    }

    /// Calls `body` with the key at the lock epoch of the tests' holders.
    package func withClassKey<Result>(
        for accessibility: ItemAccessibility, generation: UInt32, _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try withClassKey(for: accessibility, generation: generation, lockEpoch: KeyHolderContract.lockEpoch, body)
    }
}
#endif
