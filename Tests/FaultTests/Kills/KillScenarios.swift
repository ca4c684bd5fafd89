// SPDX-License-Identifier: Apache-2.0
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing

/// Operations that change the passcode or the class keys.
enum PasscodeOperation: String, CaseIterable, KillScenario {
    case set, change, changeRotating, remove, rewrap

    private static let oldPasscode = "swordfish"
    private static let newPasscode = "12345"
    /// More than one batch, where rows are rewrapped.
    private var plainItemCount: Int { self == .change || self == .remove ? 10 : 140 }

    var request: String {
        switch self {
        case .set: "set \(Self.newPasscode)"
        case .change: "change \(Self.oldPasscode) \(Self.newPasscode)"
        case .changeRotating: "rotate \(Self.oldPasscode) \(Self.newPasscode)"
        case .remove: "remove \(Self.oldPasscode)"
        case .rewrap: "unlock \(Self.oldPasscode)"
        }
    }

    func prepare(home: String) throws {
        let keychain = try LocalKeychain.withCheapPasscode(home: home)
        for (account, secret) in plainItems { try keychain.addItem(account, secret) }
        try keychain.addItemOfEachClass()
        switch self {
        case .set: break
        case .change, .changeRotating, .remove:
            try keychain.set(Self.oldPasscode)
            try keychain.addItem("akpu", "secret of akpu", .whenPasscodeSetThisDeviceOnly)
            keychain.forgetKeys()
        case .rewrap: try Self.setPasscodeOnly(home: home)
        }
    }

    /// Carries out only the first step of setting a passcode.
    private static func setPasscodeOnly(home: String) throws {
        let opened = try OpenedStore(home: home)
        let change = try opened.keybag.settingPasscode(
            Passcode(text: oldPasscode), cost: .lowest, deviceSecret: opened.deviceSecret)
        _ = try opened.store.write(ifKeybagGeneration: opened.keybag.keybagGeneration) { writing throws(KeychainFailure) in
            try writing.replaceKeybag(change.document.encoded, generation: change.document.generation)
        }
    }

    func check(home: String, _ comment: Comment) throws -> KillOutcome {
        let keychain = try LocalKeychain.withCheapPasscode(home: home)
        try expectSound(keychain, comment)
        let outcome = try finish(keychain, comment)
        try expectFinished(keychain, home: home, comment)
        return outcome
    }

    /// Expects a sound keychain before it is unlocked.
    private func expectSound(_ keychain: LocalKeychain, _ comment: Comment) throws {
        let report = try keychain.verify(purgingQuarantine: false)
        #expect(report.isSound && report.quarantinedCount == 0, comment)
        do throws(KeychainFailure) {
            let items = try keychain.secrets()
            #expect(items == expectedItems(withBound: items["akpu"] != nil), comment)
        } catch {
            #expect(error.status == .interactionNotAllowed, "\(error), \(comment)")
        }
    }

    /// Completes the killed operation, or repeats it.
    private func finish(_ keychain: LocalKeychain, _ comment: Comment) throws -> KillOutcome {
        let isPasscodeSet = try keychain.sessionStatus().isPasscodeSet
        let (old, new) = (Self.oldPasscode, Self.newPasscode)
        switch self {
        case .set:
            guard !isPasscodeSet else {
                try keychain.unlock(with: new)
                return .done
            }
            #expect(try keychain.secrets() == expectedItems(withBound: false), comment)
            try keychain.set(new)
            return .nothingDone
        case .change, .changeRotating:
            #expect(isPasscodeSet, comment)
            do throws(KeychainFailure) {
                try keychain.unlock(with: old)
            } catch {
                #expect(error.status == .authFailed, "\(error), \(comment)")
                try keychain.unlock(with: new)
                return .done
            }
            #expect(throws: KeychainFailure(.authFailed, ""), comment) { try keychain.unlock(with: new) }
            #expect(try keychain.secrets() == expectedItems(withBound: true), comment)
            try keychain.changePasscode(
                from: try Passcode(text: old), to: try Passcode(text: new), rotatingKeys: self == .changeRotating, autoLock: .standard)
            return .nothingDone
        case .remove:
            guard isPasscodeSet else { return .done }
            try keychain.unlock(with: old)
            #expect(try keychain.secrets() == expectedItems(withBound: true), comment)
            let removal = try keychain.passcodeRemoval(try Passcode(text: old))
            #expect(removal.items.map(\.name?.account) == ["akpu"], comment)
            try keychain.removePasscode(try Passcode(text: old), deleting: removal)
            return .nothingDone
        case .rewrap:
            #expect(isPasscodeSet, comment)
            let isDone = try keychain.report().store?.pendingRewrapCount == 0
            try keychain.unlock(with: old)
            return isDone ? .done : .nothingDone
        }
    }

    private func expectFinished(_ keychain: LocalKeychain, home: String, _ comment: Comment) throws {
        let isBoundKept = self == .change || self == .changeRotating
        #expect(try keychain.secrets() == expectedItems(withBound: isBoundKept), comment)
        let report = try #require(try keychain.report().store)
        #expect(report.pendingRewrapCount == 0 && report.damagedKeybagCopyCount == 0 && !report.isScrubPending, comment)
        #expect(try keychain.verify(purgingQuarantine: false).isSound, comment)
        if self != .remove {
            #expect(try !OpenedStore(home: home).keybag.holdsOlderGenerations, comment)
            try keychain.lock(.everything)
            #expect(throws: KeychainFailure(.interactionNotAllowed, ""), comment) { try keychain.secret(of: "ck") }
        }
        #expect(try keychain.secret(of: "dk") == "secret of dk", comment)
    }

    private var plainItems: [(String, String)] { (0..<plainItemCount).map { ("plain \($0)", "secret of plain \($0)") } }

    private func expectedItems(withBound: Bool) -> [String: String] {
        var items = Dictionary(uniqueKeysWithValues: plainItems)
        for accessibility in ItemAccessibility.allCases where withBound || accessibility != .whenPasscodeSetThisDeviceOnly {
            items[accessibility.rawValue] = "secret of \(accessibility.rawValue)"
        }
        return items
    }
}

/// Restoring a backup of items that are absent, newer than the existing ones, or older.
struct RestoreOperation: KillScenario {
    private static let password = "portable"
    private static let new = (0..<40).map { "new \($0)" }
    private static let changed = (0..<20).map { "changed \($0)" }
    private static let older = (0..<10).map { "older \($0)" }

    var request: String { "restore backup \(Self.password)" }

    func prepare(home: String) throws {
        let present = try LocalKeychain.withCheapPasscode(home: home)
        for account in Self.changed { try present.addItem(account, "present") }
        try withTemporaryDirectory(inMemory: true) { otherHome in
            let source = try LocalKeychain.withCheapPasscode(home: otherHome)
            for account in Self.new + Self.changed + Self.older { try source.addItem(account, "from the backup") }
            let summary = try source.createBackup(
                atPath: home + "/backup", password: try Passcode(text: Self.password), replacing: false)
            #expect(summary.savedCount == 70)
        }
        for account in Self.older { try present.addItem(account, "present") }
    }

    private static func items(isRestored: Bool) -> [String: String] {
        var items: [String: String] = [:]
        for account in changed { items[account] = isRestored ? "from the backup" : "present" }
        for account in older { items[account] = "present" }
        if isRestored { for account in new { items[account] = "from the backup" } }
        return items
    }

    func check(home: String, _ comment: Comment) throws -> KillOutcome {
        let keychain = try LocalKeychain.withCheapPasscode(home: home)
        #expect(try keychain.verify(purgingQuarantine: false).isSound, comment)
        let secrets = try keychain.secrets()
        let isRestored = secrets.count > Self.changed.count + Self.older.count
        #expect(secrets == Self.items(isRestored: isRestored), comment)
        _ = try keychain.restoreBackup(atPath: home + "/backup", password: try Passcode(text: Self.password), dryRun: false)
        #expect(try keychain.secrets() == Self.items(isRestored: true), comment)
        #expect(try keychain.verify(purgingQuarantine: false).isSound, comment)
        return isRestored ? .done : .nothingDone
    }
}

/// A move from one protector to another.
struct ProtectorOperation: KillScenario, CustomTestStringConvertible {
    let origin: DeviceProtectorKind
    let target: DeviceProtectorKind
    let passcode: String?
    /// The TPM, if the move involves one.
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
        try LocalKeychain.withCheapPasscode(home: home) { configuration in
            configuration.credentialsDirectory = home + "/credentials"
            configuration.protectorForNewStore = origin
            if let tcti { configuration.tpmTCTI = tcti }
        }
    }

    func check(home: String, _ comment: Comment) throws -> KillOutcome {
        // Without a resource manager the killed process's objects would fill the chip.
        if let tcti {
            for kind in ["-t", "-l", "-s"] { _ = try ChildProcess.run("tpm2_flushcontext", [kind, "-T", tcti]) }
        }
        let keychain = try keychain(home)
        try expectEverything(keychain, comment)
        let outcome: KillOutcome = try keychain.report().store?.protector == target ? .done : .nothingDone
        // Repeats the move, or completes it.
        if try outcome == .nothingDone || keychain.report().store?.leftoverKeyFile != nil {
            _ = try keychain.setProtector(target, passcode: code(), creatingRecoveryKey: false)
        }
        let store = try #require(try keychain.report().store)
        #expect(store.protector == target && store.leftoverKeyFile == nil && store.damagedKeybagCopyCount == 0, comment)
        let names = try FileManager.default.contentsOfDirectory(atPath: home + "/keys").filter { $0.contains(".key") }
        // The provisional file of a killed move is set aside by the next one.
        let present = names.filter { !$0.contains(".key.unusable") }
        #expect(present.count == (target == .keyFile ? 1 : 0) && present.allSatisfy { $0.hasSuffix(".key") }, "\(names), \(comment)")
        try expectEverything(try self.keychain(home), comment)
        return outcome
    }

    private func expectEverything(_ keychain: LocalKeychain, _ comment: Comment) throws {
        if let passcode { try keychain.unlock(with: passcode) }
        #expect(try keychain.secrets().count == ItemAccessibility.allCases.count - 1, comment)
        #expect(try keychain.secrets().allSatisfy { $0.value == "secret of \($0.key)" }, comment)
        #expect(try keychain.verify(purgingQuarantine: false).isSound, comment)
    }

    private func code() throws -> Passcode? {
        guard let passcode else { return nil }
        return try Passcode(text: passcode)
    }
}

/// Using the recovery key of a keychain whose key file is damaged.
struct RecoveryOperation: KillScenario {
    var request: String { "recover" }

    var systemCalls: [String] { ["pwrite64", "fdatasync", "fsync", "link", "unlink"] }

    func prepare(home: String) throws {
        let keychain = try LocalKeychain.withCheapPasscode(home: home)
        try keychain.addItemOfEachClass()
        let key = try keychain.createRecoveryKey(passcode: nil, replacing: false)
        // The bytes are copied within the closure.
        try unsafe key.secret.withBytes { unsafe Data($0) }.write(to: URL(filePath: home + "/recovery"))
        let path = try #require(try keychain.report().store?.protectorLocation)
        var contents = try Data(contentsOf: URL(filePath: path))
        contents[40] ^= 1
        // Written in place, so that the file keeps its mode.
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.write(contentsOf: contents)
        try file.close()
    }

    func check(home: String, _ comment: Comment) throws -> KillOutcome {
        var outcome = KillOutcome.done
        let keychain = try LocalKeychain.withCheapPasscode(home: home)
        do throws(KeychainFailure) {
            _ = try keychain.secrets()
        } catch {
            #expect(error.status == .notAvailable, "\(error), \(comment)")
            outcome = .nothingDone
            let key = try Passcode(text: String(contentsOfFile: home + "/recovery", encoding: .utf8))
            try keychain.useRecoveryKey(key.bytes, protector: .keyFile, passcode: nil, acceptingNoPasscode: true)
        }
        let later = try LocalKeychain.withCheapPasscode(home: home)
        #expect(try later.secrets().count == ItemAccessibility.allCases.count - 1, comment)
        #expect(try later.secrets().allSatisfy { $0.value == "secret of \($0.key)" }, comment)
        #expect(try later.verify(purgingQuarantine: false).isSound, comment)
        let endings = try FileManager.default.contentsOfDirectory(atPath: home + "/keys").filter { !$0.hasSuffix(".anchor") }
            .map { $0.dropFirst(32) }.filter { $0 != ".key" }
        // After a kill between the commit and the rename, the new file is used where it is.
        #expect(!endings.isEmpty && endings.allSatisfy { $0.hasPrefix(".key.unusable") || $0 == ".key.new" }, "\(endings), \(comment)")
        return outcome
    }
}
