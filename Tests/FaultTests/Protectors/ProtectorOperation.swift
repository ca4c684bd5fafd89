// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// A move from one protector to another, as something to be killed in.
struct ProtectorOperation: KillScenario, CustomTestStringConvertible {
    let origin: DeviceProtectorKind
    let target: DeviceProtectorKind
    let passcode: String?
    /// Where the chip is, if the move has to do with one.
    var tcti: String?

    var testDescription: String { "\(origin.name) to \(target.name)\(passcode == nil ? "" : ", with a passcode")" }

    var request: String { "protect \(target.name)\(passcode.map { " " + $0 } ?? "")" }

    var systemCalls: [String] { ["pwrite64", "fdatasync", "ftruncate", "fsync", "link", "unlink"] }

    func environment(home: String) -> [String: String] {
        var environment = ["CREDENTIALS_DIRECTORY": home + "/credentials"]
        environment["KEYCHAIN_TPM_TCTI"] = tcti
        return environment
    }

    func prepare(home: String) throws {
        let credentials = home + "/credentials"
        try FileManager.default.createDirectory(atPath: credentials, withIntermediateDirectories: false)
        try Data((0..<32).map { UInt8($0) &* 7 }).write(to: URL(filePath: credentials + "/keychain-device-secret"))
        let keychain = try keychain(home)
        try keychain.addItemOfEachClass()
        if let passcode {
            try keychain.set(passcode)
            keychain.forgetKeys()
        }
    }

    private func keychain(_ home: String) throws -> LocalKeychain {
        try LocalKeychain.cheaplyUnlocked(home: home) { configuration in
            configuration.credentialsDirectory = home + "/credentials"
            configuration.protectorForNewStore = origin
            if let tcti { configuration.tpmTCTI = tcti }
        }
    }

    func check(home: String, _ comment: Comment) throws -> KillOutcome {
        // There is no resource manager: what the killed process had loaded would fill the chip.
        if let tcti {
            for kind in ["-t", "-l", "-s"] { _ = try ChildProcess.run("tpm2_flushcontext", [kind, "-T", tcti]) }
        }
        let keychain = try keychain(home)
        try expectEverything(keychain, comment)
        let outcome: KillOutcome = try keychain.report().store?.protector == target ? .done : .nothingDone
        // Again, or what is left of it.
        if try outcome == .nothingDone || keychain.report().store?.leftoverKeyFile != nil {
            _ = try keychain.setProtector(target, passcode: code(), makingRecoveryKey: false)
        }
        let store = try #require(try keychain.report().store)
        #expect(store.protector == target && store.leftoverKeyFile == nil && store.damagedKeybagCopyCount == 0, comment)
        let names = try FileManager.default.contentsOfDirectory(atPath: home + "/keys").filter { $0.contains(".key") }
        #expect(names.count == (target == .keyFile ? 1 : 0) && names.allSatisfy { $0.hasSuffix(".key") }, "\(names), \(comment)")
        try expectEverything(try self.keychain(home), comment)
        return outcome
    }

    private func expectEverything(_ keychain: LocalKeychain, _ comment: Comment) throws {
        if let passcode { try keychain.unlock(with: passcode) }
        #expect(try keychain.secrets().count == Accessibility.allCases.count - 1, comment)
        #expect(try keychain.secrets().allSatisfy { $0.value == "secret of \($0.key)" }, comment)
        #expect(try keychain.verify(purgingQuarantine: false).isSound, comment)
    }

    private func code() throws -> Passcode? {
        guard let passcode else { return nil }
        return try Passcode(text: passcode)
    }
}
