// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// What every `DeviceProtector` promises, as checks that any implementation can be put through.
package enum DeviceProtectorContract {
    /// Checks a protector that has the secret of `storeID`.
    ///
    /// - Returns: A sentence for each promise that was broken; empty when all were kept.
    package static func violations(of protector: any DeviceProtector, storeID: StoreID) -> [String] {
        var violations: [String] = []
        do throws(KeychainFailure) {
            let secret = try bytes(protector.deviceSecret(for: storeID))
            if secret.count != DeviceSecret.byteCount { violations.append("the secret has \(secret.count) bytes") }
            if Set(secret).count < 2 { violations.append("the secret is no random one") }
            if try bytes(protector.deviceSecret(for: storeID)) != secret { violations.append("a second call gives another secret") }
        } catch {
            violations.append("the secret cannot be had: \(error)")
        }
        let location = protector.location(for: storeID)
        if location.isEmpty { violations.append("nobody learns where the secret is kept") }
        if protector.location(for: storeID) != location { violations.append("the secret is kept somewhere else at the second look") }
        return violations
    }

    /// Checks a protector that has no secret of `storeID`.
    ///
    /// - Returns: As `violations(of:storeID:)`.
    package static func violationsWhereMissing(_ protector: any DeviceProtector, storeID: StoreID) -> [String] {
        do throws(KeychainFailure) {
            _ = try protector.deviceSecret(for: storeID)
            return ["a secret is given for a store that has none"]
        } catch {
            var violations: [String] = []
            if error.status != .notAvailable { violations.append("a missing secret is answered with \(error.status.rawValue)") }
            if !error.reason.contains(protector.location(for: storeID)) {
                violations.append("nobody learns what is missing: \(error.reason)")
            }
            return violations
        }
    }

    private static func bytes(_ secret: consuming SecretBytes) -> [UInt8] {
        // The bytes are copied within the closure, to be compared.
        unsafe secret.withBytes { unsafe Array($0) }
    }
}
#endif
