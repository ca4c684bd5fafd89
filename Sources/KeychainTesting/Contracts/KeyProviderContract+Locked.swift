// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

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
                    : violationsForLent(accessibility, generation, by: provider)
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

    private static func violationsForLent(
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
