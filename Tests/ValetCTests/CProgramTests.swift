// SPDX-License-Identifier: Apache-2.0
import CValet
import Contracts
import Foundation
import KeychainTestSupport
import Testing
import Valet

@testable import ValetC

#if canImport(Glibc)
@Suite("A C program", .blocking)
struct CProgramTests {
    /// The cases of Tests/CValetTestProgram, which check the statements of valet.h.
    @Test(
        "behaves as the header documents",
        arguments: ["arguments", "values", "keys", "making", "migrations", "enclaves", "wiping", "forks", "threads"])
    func cases(_ name: String) throws {
        try Self.run(name)
    }

    @Test("does not use more memory after thousands of rounds of create, use, and free")
    func growth() throws {
        try Self.run("growth", Scale.pick("3000", full: "10000"))
    }

    @Test("exits with 2 for an unknown case")
    func noCase() throws {
        #expect(try Self.end(of: "no such case").ending == .exited(2))
    }

    private static func run(_ arguments: String...) throws {
        let (ending, output) = try end(of: arguments)
        #expect(ending == .exited(0), "\(output)")
    }

    private static func end(of arguments: String...) throws -> (ending: ChildProcess.Ending, output: String) {
        try end(of: arguments)
    }

    /// Runs the program on its own keychain.
    private static func end(of arguments: [String]) throws -> (ending: ChildProcess.Ending, output: String) {
        try withTemporaryDirectory(inMemory: true) { home in
            let child = try ChildProcess(
                BuiltProgram.path(of: "CValetTestProgram"), arguments, environment: ["KEYCHAIN_HOME": home, "KEYCHAIN_PINENTRY": ""])
            child.closeInput()
            let output = try child.readToEnd(withinSeconds: 300)
            return (try child.waitUntilEnded(), output)
        }
    }
}
#endif

#if canImport(Glibc)
/// The examples of the repository, with the library that the build put beside the tests.
@Suite("The examples", .blocking)
struct ExampleTests {
    private static let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().path
    private static let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    private static let hasPython = path.split(separator: ":").contains { FileManager.default.isExecutableFile(atPath: "\($0)/python3") }

    @Test("in C stores a secret and reads it back, with no key or secret in plain text in the keychain's files")
    func inC() throws {
        try withTemporaryDirectory { directory in
            let products = try productsPath()
            let compilation = try ChildProcess.run(
                "clang",
                [
                    "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", "\(Self.repository)/Sources/CValet/include",
                    "\(Self.repository)/Examples/C/store_secret.c", "-L", products, "-lValetC", "-Wl,-rpath,\(products)", "-o",
                    "\(directory)/store_secret",
                ], environment: ["PATH": Self.path])
            #expect(compilation.ending == .exited(0), "\(compilation.output)")
            let home = directory + "/home"
            let run = try ChildProcess.run("\(directory)/store_secret", environment: ["KEYCHAIN_HOME": home])
            #expect(run.ending == .exited(0))
            #expect(run.output == "12345\n")
            let database = try Data(contentsOf: URL(filePath: home + "/keychain.db"))
            for text in ["12345", "Skroob", "Druidia"] { #expect(database.range(of: Data(text.utf8)) == nil) }
        }
    }

    @Test("include a header that compiles as C99 and C++ without a warning", arguments: [["c", "c99"], ["c", "c17"], ["c++", "c++11"]])
    func header(_ language: [String]) throws {
        let compilation = try ChildProcess.run(
            "clang",
            [
                "-x", language[0], "-std=\(language[1])", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
                "\(Self.repository)/Sources/CValet/include/valet.h",
            ], environment: ["PATH": Self.path])
        #expect(compilation.ending == .exited(0), "\(compilation.output)")
    }

    @Test("in the article about C equals Examples/C")
    func inArticle() throws {
        let article = try String(contentsOfFile: Self.repository + "/Sources/ValetC/ValetC.docc/C.md", encoding: .utf8)
        let start = try #require(article.range(of: "```c\n"))
        let end = try #require(article.range(of: "```", range: start.upperBound..<article.endIndex))
        let example = article[start.upperBound..<end.lowerBound]
        #expect(try String(contentsOfFile: Self.repository + "/Examples/C/store_secret.c", encoding: .utf8).contains(example))
        #expect(example.contains("valet_create"))
    }

    @Test("in Python stores a secret and reads it back", .enabled(if: hasPython, "python3 is needed"))
    func inPython() throws {
        try withTemporaryDirectory { directory in
            let run = try ChildProcess.run(
                "python3", ["\(Self.repository)/Examples/Python/store_secret.py"],
                environment: ["PATH": Self.path, "KEYCHAIN_HOME": directory + "/home", "VALET_LIBRARY": productsPath() + "/libValetC.so"])
            #expect(run.ending == .exited(0))
            #expect(run.output == "12345\n")
        }
    }

    private func productsPath() throws -> String {
        URL(filePath: try BuiltProgram.path(of: "CValetTestProgram")).deletingLastPathComponent().path
    }
}
#endif

@Suite("The header and the library")
struct StatusTests {
    @Test("Each error of the keychain is its raw value plus 1", arguments: KeychainError.allCases)
    func keychainErrors(_ error: KeychainError) {
        #expect(Int(status { throw error }) == error.rawValue + 1)
        #expect(statusText(error.rawValue + 1) != "unknown status")
    }

    @Test("Each error of a migration is its raw value plus 101", arguments: MigrationError.allCases)
    func migrationErrors(_ error: MigrationError) {
        #expect(Int(status { throw error }) == error.rawValue + 101)
        #expect(statusText(error.rawValue + 101) != "unknown status")
    }

    @Test("The constants equal the raw values of the cases")
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
    @Test("The library and the command have the same version")
    func version() throws {
        let (ending, output) = try ChildProcess.run(BuiltProgram.path(of: "valet"), ["--version"])
        #expect(ending == .exited(0))
        // A static NUL-terminated text.
        let version = unsafe valet_version().map { unsafe String(cString: $0) }
        #expect(version == output.trimmingCharacters(in: .whitespacesAndNewlines))
    }
    #endif

    private func statusText(_ status: Int) -> String {
        // A static NUL-terminated text.
        unsafe valet_status_text(valet_status(status)).map { unsafe String(cString: $0) } ?? ""
    }
}
