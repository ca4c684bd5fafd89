// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// Using the recovery key of a keychain whose key file is damaged, as something to be killed in.
struct RecoveryOperation: KillScenario {
    var request: String { "recover" }

    var systemCalls: [String] { ["pwrite64", "fdatasync", "fsync", "link", "unlink"] }

    func prepare(home: String) throws {
        let keychain = try LocalKeychain.cheaplyUnlocked(home: home)
        try keychain.addItemOfEachClass()
        let key = try keychain.createRecoveryKey(passcode: nil, replacing: false)
        // The bytes are copied within the closure.
        try unsafe key.secret.withBytes { unsafe Data($0) }.write(to: URL(filePath: home + "/recovery"))
        let path = try #require(try keychain.report().store?.protectorLocation)
        var contents = try Data(contentsOf: URL(filePath: path))
        contents[40] ^= 1
        // In place: the file stays its owner's alone.
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.write(contentsOf: contents)
        try file.close()
    }

    func check(home: String, _ comment: Comment) throws -> KillOutcome {
        var outcome = KillOutcome.done
        let keychain = try LocalKeychain.cheaplyUnlocked(home: home)
        do throws(KeychainFailure) {
            _ = try keychain.secrets()
        } catch {
            #expect(error.status == .notAvailable, "\(error), \(comment)")
            outcome = .nothingDone
            let key = try Passcode(text: String(contentsOfFile: home + "/recovery", encoding: .utf8))
            try keychain.useRecoveryKey(key.bytes, protector: .keyFile, passcode: nil)
        }
        let later = try LocalKeychain.cheaplyUnlocked(home: home)
        #expect(try later.secrets().count == Accessibility.allCases.count - 1, comment)
        #expect(try later.secrets().allSatisfy { $0.value == "secret of \($0.key)" }, comment)
        #expect(try later.verify(purgingQuarantine: false).isSound, comment)
        let endings = try FileManager.default.contentsOfDirectory(atPath: home + "/keys").map { $0.dropFirst(32) }.filter { $0 != ".key" }
        #expect(!endings.isEmpty && endings.allSatisfy { $0.hasPrefix(".key.unusable") }, "\(endings), \(comment)")
        return outcome
    }
}
