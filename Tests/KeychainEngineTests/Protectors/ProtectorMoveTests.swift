// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// A directory with a keychain, a systemd credential, and a TPM in memory.
struct ProtectedHome {
    let path: String
    let chip = InMemorySealingDevice()

    static func with(_ body: (ProtectedHome) throws -> Void) throws {
        try withTemporaryDirectory(inMemory: true) { path in
            let home = ProtectedHome(path: path)
            try FileManager.default.createDirectory(
                atPath: home.credentials, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            try Data((0..<32).map { _ in UInt8.random(in: .min ... .max) }).write(to: URL(filePath: home.credential))
            try body(home)
        }
    }

    private var credentials: String { path + "/credentials" }
    var credential: String { credentials + "/keychain-device-secret" }

    /// Another keychain object each time, with keys of its own memory, so that nothing is left in the kernel's keyring.
    func keychain(
        newWith protector: DeviceProtectorKind = .keyFile, chip other: (any SealingDevice)? = nil
    ) throws -> LocalKeychain {
        try LocalKeychain.withCheapPasscode(home: path, holder: .processMemory) { configuration in
            configuration.credentialsDirectory = credentials
            configuration.sealingDevice = other ?? chip
            configuration.protectorForNewStore = protector
        }
    }

    /// Removes all keys held for this store in this process, including the device secret, as the end of the process does.
    func forgetWhatIsHeld(_ keychain: LocalKeychain) throws {
        guard let id = try keychain.report().store?.id else { return }
        let holder = ProcessMemoryKeyHolder(storeID: id, epochSource: { LockEpoch(rawValue: 0) })
        for slot in KeyHolderSlot.allCases { try holder.remove(slot) }
    }

    /// The names of the existing key files.
    func keyFiles() -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path + "/keys")) ?? []
        // All begin with the store's identifier.
        return names.filter { !$0.hasSuffix(".anchor") }.map { String($0.dropFirst(32)) }.sorted()
    }
}

extension LocalKeychain {
    var protectorKind: DeviceProtectorKind? { get throws { try report().store?.protector } }

    func protect(_ kind: DeviceProtectorKind, _ passcode: String? = nil, creatingRecoveryKey: Bool = false) throws -> SharedSecretBytes? {
        let code: Passcode? = if let passcode { try Passcode(text: passcode) } else { nil }
        return try setProtector(kind, passcode: code, creatingRecoveryKey: creatingRecoveryKey)
    }

    func recover(_ key: borrowing SecretBytes, _ kind: DeviceProtectorKind = .keyFile, _ passcode: String? = nil) throws {
        let code: Passcode? = if let passcode { try Passcode(text: passcode) } else { nil }
        try useRecoveryKey(key, protector: kind, passcode: code, acceptingNoPasscode: passcode == nil)
    }
}

@Suite("Changing the protector of a keychain")
struct ProtectorMoveTests {
    @Test(
        "Changing from key file to each other protector and back preserves all items and removes the old key file",
        arguments: [false, true])
    func roundTrip(withPasscode: Bool) throws {
        for kind in [DeviceProtectorKind.systemdCredential, .tpm2] {
            try ProtectedHome.with { home in
                let keychain = try home.keychain()
                let passcode = withPasscode ? "Druidia" : nil
                try keychain.addItem("before", "one", .alwaysThisDeviceOnly)
                if let passcode { try keychain.set(passcode) }
                try keychain.addItem("after", "two")

                _ = try keychain.protect(kind, passcode)
                #expect(try keychain.protectorKind == kind && home.keyFiles() == [])
                #expect(try keychain.secret(of: "before") == "one" && keychain.secret(of: "after") == "two")
                #expect(try home.keychain().secret(of: "before") == "one")

                _ = try keychain.protect(.keyFile, passcode)
                #expect(try keychain.protectorKind == .keyFile && home.keyFiles() == [".key"])
                let last = try home.keychain()
                if let passcode {
                    try home.forgetWhatIsHeld(last)
                    #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try last.secret(of: "after") }
                    try last.unlock(with: passcode)
                }
                #expect(try last.secret(of: "before") == "one" && last.secret(of: "after") == "two")
                #expect(try last.verify(purgingQuarantine: false).isSound)
            }
        }
    }

    @Test("The lock state and the time of automatic locking are preserved")
    func lockStays() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("ck", "one", .afterFirstUnlock)
            try keychain.set("Druidia", autoLock: .after(seconds: 77))
            _ = try keychain.protect(.systemdCredential, "Druidia")
            #expect(try keychain.sessionStatus().state == .unlocked && keychain.sessionStatus().autoLock == .after(seconds: 77))
            try keychain.lock(.whenUnlocked)
            _ = try keychain.protect(.keyFile, "Druidia")
            #expect(try keychain.sessionStatus().state == .locked && keychain.secret(of: "ck") == "one")
            try keychain.lock(.everything)
            _ = try keychain.protect(.tpm2, "Druidia")
            #expect(try keychain.sessionStatus().state == .neverUnlocked)
            try keychain.unlock(with: "Druidia")
            #expect(try keychain.secret(of: "ck") == "one")
        }
    }

    @Test("Without the passcode, or with a wrong one, nothing changes")
    func passcodeNeeded() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.set("Druidia")
            let generation = try keychain.report().store?.keybagGeneration
            for passcode in [nil, "Spaceball"] {
                #expect(throws: KeychainFailure(.authFailed, "")) { _ = try keychain.protect(.systemdCredential, passcode) }
            }
            #expect(try keychain.report().store?.keybagGeneration == generation && home.keyFiles() == [".key"])
        }
    }

    @Test("Changing to the current protector, or to a missing credential or TPM, is rejected and changes nothing")
    func refused() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            #expect(throws: KeychainFailure(.duplicateItem, "")) { _ = try keychain.protect(.keyFile) }
            try FileManager.default.removeItem(atPath: home.credential)
            #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try keychain.protect(.systemdCredential) }
            home.chip.setReachable(false)
            #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try keychain.protect(.tpm2) }
            #expect(try home.keychain().secret(of: "there") == "one" && home.keyFiles() == [".key"])
        }
    }

    @Test("Without a keychain, none is created")
    func nothingThere() throws {
        try ProtectedHome.with { home in
            #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try home.keychain().protect(.tpm2) }
            #expect(!FileManager.default.fileExists(atPath: home.path + "/keychain.db"))
        }
    }

    @Test("Another program that has the keychain open continues to read and write")
    func otherProgram() throws {
        try ProtectedHome.with { home in
            let (one, other) = (try home.keychain(), try home.keychain())
            try one.addItem("first", "one")
            #expect(try other.secret(of: "first") == "one")
            for kind in [DeviceProtectorKind.systemdCredential, .tpm2, .keyFile] {
                _ = try one.protect(kind)
                #expect(try other.secret(of: "first") == "one")
                try other.addItem("by the other, \(kind.name)", "two")
                #expect(try one.secret(of: "by the other, \(kind.name)") == "two" && other.protectorKind == kind)
            }
        }
    }

    @Test("A leftover key file of an earlier change opens nothing, is reported, and is removed by repeating the change")
    func leftover() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            let path = try #require(try keychain.report().store?.protectorLocation)
            let contents = try Data(contentsOf: URL(filePath: path))
            _ = try keychain.protect(.systemdCredential)
            for name in [path, path + ".new"] {
                #expect(FileManager.default.createFile(atPath: name, contents: contents, attributes: [.posixPermissions: 0o600]))
            }
            #expect(try keychain.report().store?.leftoverKeyFile == path && home.keychain().secret(of: "there") == "one")
            _ = try keychain.protect(.systemdCredential)
            #expect(try home.keyFiles() == [] && keychain.report().store?.leftoverKeyFile == nil)
        }
    }

    @Test("A leftover key file does not prevent a change back")
    func leftoverAndBack() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            let path = try #require(try keychain.report().store?.protectorLocation)
            let contents = try Data(contentsOf: URL(filePath: path))
            _ = try keychain.protect(.tpm2)
            for name in [path, path + ".new"] {
                #expect(FileManager.default.createFile(atPath: name, contents: contents, attributes: [.posixPermissions: 0o600]))
            }
            _ = try keychain.protect(.keyFile)
            #expect(home.keyFiles() == [".key", ".key.unusable1", ".key.unusable2"])
            #expect(try home.keychain().secret(of: "there") == "one")
            #expect(try Data(contentsOf: URL(filePath: path)) != contents)
        }
    }

    @Test("The next opening completes a change whose last step is missing")
    func finishedByOpening() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .systemdCredential)
            try keychain.addItem("there", "one")
            _ = try keychain.protect(.keyFile)
            let path = try #require(try keychain.report().store?.protectorLocation)
            try FileManager.default.moveItem(atPath: path, toPath: path + ".new")
            #expect(try home.keychain().secret(of: "there") == "one" && home.keyFiles() == [".key"])
        }
    }
}

@Suite("A recovery key")
struct RecoveryKeyUseTests {
    @Test("The recovery key restores access if the key file is lost; the passcode is still required", arguments: [false, true])
    func lostKeyFile(withPasscode: Bool) throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            let passcode = withPasscode ? "Druidia" : nil
            try keychain.addItem("there", "one")
            if let passcode { try keychain.set(passcode) }
            let key = try keychain.createRecoveryKey(passcode: passcode.map { try Passcode(text: $0) }, replacing: false)
            #expect(try keychain.report().store?.hasRecoveryKey == true)
            let path = try #require(try keychain.report().store?.protectorLocation)
            try home.forgetWhatIsHeld(keychain)
            try FileManager.default.removeItem(atPath: path)

            let later = try home.keychain()
            #expect(throws: KeychainFailure(.notAvailable, "")) { try later.secret(of: "there") }
            #expect(try later.recoveryNeedsPasscode(key.secret) == withPasscode)
            if withPasscode {
                for wrong in [nil, "Spaceball"] {
                    #expect(throws: KeychainFailure(.authFailed, "")) { try later.recover(key.secret, .keyFile, wrong) }
                }
            }
            try later.recover(key.secret, .keyFile, passcode)
            if let passcode { try later.unlock(with: passcode) }
            #expect(try later.secret(of: "there") == "one" && home.keyFiles() == [".key"])
            #expect(try later.report().store?.hasRecoveryKey == true && later.verify(purgingQuarantine: false).isSound)
        }
    }

    @Test("A damaged key file is set aside, not overwritten")
    func damagedKeyFile() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            let key = try keychain.createRecoveryKey(passcode: nil, replacing: false)
            let path = try #require(try keychain.report().store?.protectorLocation)
            var contents = try Data(contentsOf: URL(filePath: path))
            contents[30] ^= 1
            try contents.write(to: URL(filePath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            let later = try home.keychain()
            try later.recover(key.secret)
            #expect(try later.secret(of: "there") == "one" && home.keyFiles() == [".key", ".key.unusable1"])
        }
    }

    @Test("The recovery key restores access after the TPM was cleared or replaced, and no item is lost", arguments: [false, true])
    func clearedChip(withPasscode: Bool) throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            let passcode = withPasscode ? "Druidia" : nil
            try keychain.addItem("there", "one")
            if let passcode { try keychain.set(passcode) }
            let key = try #require(try keychain.protect(.tpm2, passcode, creatingRecoveryKey: true))
            try home.forgetWhatIsHeld(keychain)
            home.chip.clear()

            let later = try home.keychain()
            let failure = #expect(throws: KeychainFailure.self) { try later.secret(of: "there") }
            #expect(failure?.status == .notAvailable && failure?.remedy == .useRecoveryKey && failure?.isDamage == false)
            #expect(throws: KeychainFailure(.notAvailable, "")) { try later.addItem("new", "two") }
            try later.recover(key.secret, .tpm2, passcode)
            #expect(try later.protectorKind == .tpm2)
            if let passcode { try later.unlock(with: passcode) }
            #expect(try later.secret(of: "there") == "one" && later.verify(purgingQuarantine: false).isSound)
        }
    }

    @Test("A second recovery key replaces the first only on request, and the first then opens nothing")
    func replaced() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            let first = try keychain.createRecoveryKey(passcode: nil, replacing: false)
            #expect(throws: KeychainFailure(.duplicateItem, "")) { _ = try keychain.createRecoveryKey(passcode: nil, replacing: false) }
            let second = try keychain.createRecoveryKey(passcode: nil, replacing: true)
            #expect(throws: KeychainFailure(.authFailed, "")) { _ = try keychain.recoveryNeedsPasscode(first.secret) }
            #expect(try !keychain.recoveryNeedsPasscode(second.secret))
            // An existing key file is not created again.
            #expect(try keychain.protect(.tpm2, creatingRecoveryKey: true) == nil)
            #expect(try !keychain.recoveryNeedsPasscode(second.secret))
        }
    }

    @Test("The recovery key is rejected if it is created without the set passcode, used although nothing is lost, or mistyped")
    func refused() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            let key = try keychain.createRecoveryKey(passcode: nil, replacing: false)
            #expect(throws: KeychainFailure(.duplicateItem, "")) { try keychain.recover(key.secret) }
            try keychain.set("Druidia")
            #expect(throws: KeychainFailure(.authFailed, "")) { _ = try keychain.createRecoveryKey(passcode: nil, replacing: true) }
            let mistyped = try Passcode(text: "0000-0000")
            #expect(throws: KeychainFailure(.parameter, "")) { _ = try keychain.recoveryNeedsPasscode(mistyped.bytes) }
            #expect(try keychain.secret(of: "there") == "one" && home.keyFiles() == [".key"])
        }
    }
}
