// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// What every `KeyProvider` promises, as checks that any implementation can be put through.
package enum KeyProviderContract {
    /// Checks a provider that is unlocked, or has no passcode.
    ///
    /// - Returns: A sentence for each promise that was broken; empty when all were kept.
    package static func violations(of provider: any KeyProvider, isPasscodeSet: Bool) -> [String] {
        var violations: [String] = []
        var seen: Set<[UInt8]> = []
        for accessibility in Accessibility.allCases where isPasscodeSet || accessibility != .whenPasscodeSetThisDeviceOnly {
            let name = accessibility.rawValue
            do throws(KeychainFailure) {
                let generation = try provider.currentGeneration(for: accessibility)
                if try provider.currentGeneration(for: accessibility) != generation {
                    violations.append("\(name): the current generation changed by itself")
                }
                if provider.availability(of: accessibility, generation: generation) != .available {
                    violations.append("\(name): the key of the current generation is not available")
                }
                let key = try lent(by: provider, accessibility, generation, &violations)
                if try lent(by: provider, accessibility, generation, &violations) != key {
                    violations.append("\(name): a second call lends another key")
                }
                if !seen.insert(key).inserted { violations.append("\(name): the key is that of another class") }
                violations += violationsForAbsentGeneration(generation &+ 1_000, of: accessibility, by: provider)
                violations += violationsForThrowingBody(accessibility, generation, by: provider)
            } catch {
                violations.append("\(name): the key cannot be had: \(error)")
            }
        }
        if !isPasscodeSet { violations += violationsWithoutPasscode(by: provider) }
        return violations
    }

    private static func lent(
        by provider: any KeyProvider, _ accessibility: Accessibility, _ generation: UInt32, _ violations: inout [String]
    ) throws(KeychainFailure) -> [UInt8] {
        var isAsked = false
        let bytes = try provider.withClassKey(for: accessibility, generation: generation) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            isAsked = key.accessibility == accessibility && key.generation == generation
            // The bytes are copied within the closure, to be compared.
            return unsafe key.secret.withBytes { unsafe Array($0) }
        }
        if !isAsked { violations.append("\(accessibility.rawValue): the key lent says it is another one") }
        if bytes.count != ClassKey.byteCount { violations.append("\(accessibility.rawValue): the key has \(bytes.count) bytes") }
        return bytes
    }

    static func violationsForAbsentGeneration(
        _ generation: UInt32, of accessibility: Accessibility, by provider: any KeyProvider
    ) -> [String] {
        var violations: [String] = []
        if provider.availability(of: accessibility, generation: generation) != .missing {
            violations.append("\(accessibility.rawValue): a generation that never was is not 'missing'")
        }
        let status = statusOfLending(accessibility, generation, by: provider)
        if status != .decode { violations.append("\(accessibility.rawValue): a generation that never was answers \(status.rawValue)") }
        return violations
    }

    private static func violationsForThrowingBody(
        _ accessibility: Accessibility, _ generation: UInt32, by provider: any KeyProvider
    ) -> [String] {
        do throws(KeychainFailure) {
            try provider.withClassKey(for: accessibility, generation: generation) { _ throws(KeychainFailure) in
                throw KeychainFailure(.userCanceled, "thrown by the caller")
            }
            return ["\(accessibility.rawValue): what the caller throws is lost"]
        } catch {
            return error.status == .userCanceled ? [] : ["\(accessibility.rawValue): what the caller throws comes back as \(error)"]
        }
    }

    private static func violationsWithoutPasscode(by provider: any KeyProvider) -> [String] {
        let accessibility = Accessibility.whenPasscodeSetThisDeviceOnly
        var violations: [String] = []
        do throws(KeychainFailure) {
            _ = try provider.currentGeneration(for: accessibility)
            violations.append("akpu: has a generation while no passcode is set")
        } catch {
            if error.status != .authFailed { violations.append("akpu: without a passcode the answer is \(error)") }
        }
        if provider.availability(of: accessibility, generation: 1) == .available {
            violations.append("akpu: available while no passcode is set")
        }
        if statusOfLending(accessibility, 1, by: provider) == .success { violations.append("akpu: lent while no passcode is set") }
        return violations
    }

    static func statusOfLending(
        _ accessibility: Accessibility, _ generation: UInt32, by provider: any KeyProvider
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
    /// Checks a provider with a passcode that is locked, or was never unlocked.
    ///
    /// - Returns: A sentence for each promise that was broken; empty when all were kept.
    package static func violationsWhileLocked(of provider: any KeyProvider, isFirstUnlockDone: Bool) -> [String] {
        Accessibility.allCases.flatMap { accessibility in
            do throws(KeychainFailure) {
                let generation = try provider.currentGeneration(for: accessibility)
                let violations =
                    isLocked(accessibility, isFirstUnlockDone: isFirstUnlockDone)
                    ? violationsForLocked(accessibility, generation, by: provider)
                    : violationsForAvailable(accessibility, generation, by: provider)
                return violations + violationsForAbsentGeneration(generation &+ 1_000, of: accessibility, by: provider)
            } catch {
                return ["\(accessibility.rawValue): the current generation cannot be had while locked: \(error)"]
            }
        }
    }

    private static func isLocked(_ accessibility: Accessibility, isFirstUnlockDone: Bool) -> Bool {
        switch accessibility {
        case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: true
        case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: !isFirstUnlockDone
        case .always, .alwaysThisDeviceOnly: false
        }
    }

    private static func violationsForLocked(
        _ accessibility: Accessibility, _ generation: UInt32, by provider: any KeyProvider
    ) -> [String] {
        var violations: [String] = []
        if provider.availability(of: accessibility, generation: generation) != .locked {
            violations.append("\(accessibility.rawValue): not 'locked' while locked")
        }
        var isLent = false
        do throws(KeychainFailure) {
            try provider.withClassKey(for: accessibility, generation: generation) { _ throws(KeychainFailure) in isLent = true }
            violations.append("\(accessibility.rawValue): asking for the key succeeds while locked")
        } catch {
            if error.status != .interactionNotAllowed {
                violations.append("\(accessibility.rawValue): the answer while locked is \(error)")
            }
        }
        if isLent { violations.append("\(accessibility.rawValue): the key is lent while locked") }
        return violations
    }

    private static func violationsForAvailable(
        _ accessibility: Accessibility, _ generation: UInt32, by provider: any KeyProvider
    ) -> [String] {
        var violations: [String] = []
        if provider.availability(of: accessibility, generation: generation) != .available {
            violations.append("\(accessibility.rawValue): not 'available', though no lock concerns it")
        }
        let status = statusOfLending(accessibility, generation, by: provider)
        if status != .success { violations.append("\(accessibility.rawValue): not lent, though no lock concerns it: \(status.rawValue)") }
        return violations
    }
}
#endif
