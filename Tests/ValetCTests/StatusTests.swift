// SPDX-License-Identifier: Apache-2.0
import CValet
import Foundation
import KeychainTestSupport
import Testing
import Valet

@testable import ValetC

@Suite("The header and what is behind it")
struct StatusTests {
    @Test("Each error of the keychain is its raw value plus 1", arguments: KeychainError.allCases)
    func keychainErrors(_ error: KeychainError) {
        #expect(Int(statusAnswer { throw error }) == error.rawValue + 1)
        #expect(statusText(error.rawValue + 1) != "unknown status")
    }

    @Test("Each error of a migration is its raw value plus 101", arguments: MigrationError.allCases)
    func migrationErrors(_ error: MigrationError) {
        #expect(Int(statusAnswer { throw error }) == error.rawValue + 101)
        #expect(statusText(error.rawValue + 101) != "unknown status")
    }

    @Test("The names of the constants are those of the cases")
    func names() {
        #expect(valet_error_could_not_access_keychain == KeychainError.couldNotAccessKeychain.rawValue + 1)
        #expect(valet_error_user_cancelled == KeychainError.userCancelled.rawValue + 1)
        #expect(valet_error_item_not_found == KeychainError.itemNotFound.rawValue + 1)
        #expect(valet_error_missing_entitlement == KeychainError.missingEntitlement.rawValue + 1)
        #expect(valet_error_empty_key == KeychainError.emptyKey.rawValue + 1)
        #expect(valet_error_empty_value == KeychainError.emptyValue.rawValue + 1)
        #expect(valet_error_invalid_query == MigrationError.invalidQuery.rawValue + 101)
        #expect(valet_error_key_to_migrate_invalid == MigrationError.keyToMigrateInvalid.rawValue + 101)
        #expect(valet_error_data_to_migrate_invalid == MigrationError.dataToMigrateInvalid.rawValue + 101)
        #expect(valet_error_duplicate_key_to_migrate == MigrationError.duplicateKeyToMigrate.rawValue + 101)
        #expect(valet_error_key_to_migrate_already_exists == MigrationError.keyToMigrateAlreadyExistsInValet.rawValue + 101)
        #expect(valet_error_removal_failed == MigrationError.removalFailed.rawValue + 101)
        #expect(valet_accessibility_when_unlocked == Accessibility.whenUnlocked.rawValue)
        #expect(valet_accessibility_after_first_unlock == Accessibility.afterFirstUnlock.rawValue)
        #expect(valet_accessibility_when_passcode_set_this_device_only == Accessibility.whenPasscodeSetThisDeviceOnly.rawValue)
        #expect(valet_accessibility_when_unlocked_this_device_only == Accessibility.whenUnlockedThisDeviceOnly.rawValue)
        #expect(valet_accessibility_after_first_unlock_this_device_only == Accessibility.afterFirstUnlockThisDeviceOnly.rawValue)
        #expect(valet_cloud_accessibility_when_unlocked == CloudAccessibility.whenUnlocked.rawValue)
        #expect(valet_cloud_accessibility_after_first_unlock == CloudAccessibility.afterFirstUnlock.rawValue)
        #expect(valet_access_control_user_presence == SecureEnclaveAccessControl.userPresence.rawValue)
        #expect(valet_access_control_biometric_any == SecureEnclaveAccessControl.biometricAny.rawValue)
        #expect(valet_access_control_biometric_current_set == SecureEnclaveAccessControl.biometricCurrentSet.rawValue)
        #expect(valet_access_control_device_passcode == SecureEnclaveAccessControl.devicePasscode.rawValue)
    }

    #if canImport(Glibc)
    @Test("The library and the command have one version")
    func version() throws {
        let (ending, output) = try ChildProcess.run(BuiltProgram.path(of: "valet"), ["--version"])
        #expect(ending == .exited(0))
        // Static text, ended by NUL.
        let version = unsafe valet_version().map { unsafe String(cString: $0) }
        #expect(version == output.trimmingCharacters(in: .whitespacesAndNewlines))
    }
    #endif

    private func statusText(_ status: Int) -> String {
        // Static text, ended by NUL.
        unsafe valet_status_text(valet_status(status)).map { unsafe String(cString: $0) } ?? ""
    }
}
