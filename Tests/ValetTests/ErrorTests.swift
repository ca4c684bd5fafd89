// SPDX-License-Identifier: Apache-2.0
import KeychainServices
import Testing

@testable import Valet

@Suite("Errors")
struct ErrorTests {
    @Test("KeychainError has six cases, numbered from 0, each described by type and case")
    func keychainErrors() {
        let names = ["couldNotAccessKeychain", "userCancelled", "itemNotFound", "missingEntitlement", "emptyKey", "emptyValue"]
        #expect(KeychainError.allCases.map(\.rawValue) == Array(0...5))
        #expect(KeychainError.allCases.map(\.description) == names.map { "KeychainError.\($0)" })
        #expect(
            KeychainError.allCases == [
                .couldNotAccessKeychain, .userCancelled, .itemNotFound, .missingEntitlement, .emptyKey, .emptyValue,
            ])
    }

    @Test("MigrationError has six cases, numbered from 0, each described by type and case")
    func migrationErrors() {
        let names = [
            "invalidQuery", "keyToMigrateInvalid", "dataToMigrateInvalid", "duplicateKeyToMigrate",
            "keyToMigrateAlreadyExistsInValet", "removalFailed",
        ]
        #expect(MigrationError.allCases.map(\.rawValue) == Array(0...5))
        #expect(MigrationError.allCases.map(\.description) == names.map { "MigrationError.\($0)" })
        #expect(
            MigrationError.allCases == [
                .invalidQuery, .keyToMigrateInvalid, .dataToMigrateInvalid, .duplicateKeyToMigrate,
                .keyToMigrateAlreadyExistsInValet, .removalFailed,
            ])
    }

    @Test(
        "A status becomes an error, and only 'not found' becomes 'not found'",
        arguments: [
            (errSecItemNotFound, KeychainError.itemNotFound),
            (errSecUserCanceled, .userCancelled),
            (errSecAuthFailed, .userCancelled),
            (errSecMissingEntitlement, .missingEntitlement),
            (errSecInteractionNotAllowed, .couldNotAccessKeychain),
            (errSecNotAvailable, .couldNotAccessKeychain),
            (errSecDecode, .couldNotAccessKeychain),
            (errSecIO, .couldNotAccessKeychain),
            (errSecParam, .couldNotAccessKeychain),
            (errSecDuplicateItem, .couldNotAccessKeychain),
        ])
    func statusMapping(status: OSStatus, error: KeychainError) {
        #expect(KeychainError(status: status) == error)
    }

    @Test(
        "Writing asks nobody, so a failed authentication is no refusal by a person",
        arguments: [
            (errSecAuthFailed, KeychainError.couldNotAccessKeychain),
            (errSecItemNotFound, .couldNotAccessKeychain),
            (errSecUserCanceled, .userCancelled),
            (errSecMissingEntitlement, .missingEntitlement),
            (errSecInteractionNotAllowed, .couldNotAccessKeychain),
        ])
    func statusMappingOfWriting(status: OSStatus, error: KeychainError) {
        #expect(KeychainError(statusOfWriting: status) == error)
    }
}
