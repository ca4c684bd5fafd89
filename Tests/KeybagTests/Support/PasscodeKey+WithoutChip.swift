// SPDX-License-Identifier: Apache-2.0
import KeychainCore

@testable import Keybag

extension PasscodeKey {
    /// The key where no chip has a part of it.
    static func derive(
        from passcode: borrowing Passcode, _ record: PasscodeRecord, deviceSecret: borrowing SecretBytes, storeID: StoreID
    ) throws(KeychainFailure) -> SecretBytes {
        try derive(from: passcode, record, deviceSecret: deviceSecret, storeID: storeID, with: { _ in nil }).key.copy()
    }
}
