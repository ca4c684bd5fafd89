// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

extension MemoryKeychain {
    /// The passcode that is set, as text; nil where none is, or where it is not known to the test.
    func passcodeInForce() -> String? {
        for entry in parts.passcodes.newestFirst {
            do throws(KeychainFailure) {
                // It is checked there, and nothing is changed.
                _ = try passcodeRemoval(entry.passcode)
                // The bytes are copied within the closure; the passcode of a test is no secret.
                return unsafe entry.passcode.bytes.withBytes { unsafe String(decoding: $0, as: UTF8.self) }
            } catch {
                continue
            }
        }
        return nil
    }
}
#endif
