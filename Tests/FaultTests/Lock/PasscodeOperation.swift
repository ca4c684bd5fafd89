// SPDX-License-Identifier: Apache-2.0
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing

/// What changes a keychain's passcode or its class keys, as something to be killed in.
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
        let keychain = try LocalKeychain.cheaplyUnlocked(home: home)
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

    /// The first step of setting a passcode, and none of those after it.
    private static func setPasscodeOnly(home: String) throws {
        let opened = try OpenedStore(home: home)
        let change = try opened.keybag.settingPasscode(
            Passcode(text: oldPasscode), cost: try #require(PasscodeCost(memoryMebibytes: 1)), deviceSecret: opened.deviceSecret)
        _ = try opened.store.write(ifKeybagGeneration: opened.keybag.keybagGeneration) { writing throws(KeychainFailure) in
            try writing.replaceKeybag(change.document.encoded, generation: change.document.generation)
        }
    }

    func check(home: String, _ comment: Comment) throws -> KillOutcome {
        let keychain = try LocalKeychain.cheaplyUnlocked(home: home)
        try expectSound(keychain, comment)
        let outcome = try finish(keychain, comment)
        try expectFinished(keychain, home: home, comment)
        return outcome
    }

    /// Before anybody unlocks it or goes on.
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

    /// Brings what was killed to its end, from wherever it had come.
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
            let isDone = try keychain.report().store?.rowCountToRewrap == 0
            try keychain.unlock(with: old)
            return isDone ? .done : .nothingDone
        }
    }

    private func expectFinished(_ keychain: LocalKeychain, home: String, _ comment: Comment) throws {
        let isBoundKept = self == .change || self == .changeRotating
        #expect(try keychain.secrets() == expectedItems(withBound: isBoundKept), comment)
        let report = try #require(try keychain.report().store)
        #expect(report.rowCountToRewrap == 0 && report.damagedKeybagCopyCount == 0 && !report.isScrubPending, comment)
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
        for accessibility in Accessibility.allCases where withBound || accessibility != .whenPasscodeSetThisDeviceOnly {
            items[accessibility.rawValue] = "secret of \(accessibility.rawValue)"
        }
        return items
    }
}
