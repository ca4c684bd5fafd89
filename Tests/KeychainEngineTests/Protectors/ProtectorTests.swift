// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import KeychainTesting
import Testing

/// A correct protector with one planted fault.
private struct BrokenProtector: DeviceProtector {
    enum Fault: CaseIterable {
        case shortensSecret, givesAnotherEachTime, givesNoRandomOne, saysNotFound, namesNothing, servesEveryStore, hidesLocation
    }

    let good: InMemoryProtector
    let fault: Fault?

    var kind: DeviceProtectorKind { good.kind }

    func location(for storeID: StoreID) -> String { fault == .hidesLocation ? "" : good.location(for: storeID) }

    func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        switch fault {
        case .shortensSecret: return try SecretBytes(randomByteCount: DeviceSecret.byteCount - 1)
        case .givesAnotherEachTime: return try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        case .givesNoRandomOne: return try unsafe SecretBytes(byteCount: DeviceSecret.byteCount) { _ in }  // All zeros.
        case .saysNotFound where storeID != good.storeID: throw KeychainFailure(.itemNotFound, "nothing in memory")
        case .namesNothing where storeID != good.storeID: throw KeychainFailure(.notAvailable, "nothing there")
        case .servesEveryStore: return try good.deviceSecret(for: good.storeID)
        default: return try good.deviceSecret(for: storeID)
        }
    }
}

@Suite("Every protector satisfies the contract of protectors")
struct DeviceProtectorContractTests {
    private let storeID = StoreID.random()
    private let otherStoreID = StoreID.random()

    @Test("The key file")
    func keyFile() throws {
        try withTemporaryDirectory { directory in
            let keyFile = KeyFile(directory: directory, storePath: directory + "/keychain.db")
            try keyFile.prepare(SecretBytes(randomByteCount: DeviceSecret.byteCount), for: storeID)
            try keyFile.confirm(for: storeID)
            #expect(DeviceProtectorContract.violations(of: keyFile, storeID: storeID) == [])
            #expect(DeviceProtectorContract.violationsWithoutSecret(keyFile, storeID: otherStoreID) == [])
        }
    }

    @Test("A credential of zeros, as a lost write leaves it, is refused")
    func zeroCredential() throws {
        try withTemporaryDirectory { directory in
            try Data(count: DeviceSecret.byteCount).write(to: URL(filePath: directory + "/" + SystemdCredential.credentialName))
            let failure = #expect(throws: KeychainFailure.self) {
                _ = try SystemdCredential(credentialsDirectory: directory).deviceSecret(for: storeID)
            }
            #expect(failure?.cause == .malformed && failure?.subject == .credential)
        }
    }

    @Test("The systemd credential, which is one for all stores of a service")
    func systemdCredential() throws {
        try withTemporaryDirectory { directory in
            let credential = SystemdCredential(credentialsDirectory: directory)
            #expect(DeviceProtectorContract.violationsWithoutSecret(credential, storeID: storeID) == [])
            try Data((0..<32).map { _ in UInt8.random(in: 0...255) })
                .write(to: URL(filePath: directory + "/" + SystemdCredential.credentialName))
            #expect(DeviceProtectorContract.violations(of: credential, storeID: storeID) == [])
        }
    }

    @Test("The protector in memory")
    func inMemory() throws {
        let protector = try InMemoryProtector()
        #expect(DeviceProtectorContract.violations(of: protector, storeID: protector.storeID) == [])
        #expect(DeviceProtectorContract.violationsWithoutSecret(protector, storeID: storeID) == [])
    }

    private func violations(_ fault: BrokenProtector.Fault?) throws -> [String] {
        let protector = BrokenProtector(good: try InMemoryProtector(), fault: fault)
        return DeviceProtectorContract.violations(of: protector, storeID: protector.good.storeID)
            + DeviceProtectorContract.violationsWithoutSecret(protector, storeID: storeID)
    }

    @Test("A protector that violates the contract fails", arguments: BrokenProtector.Fault.allCases)
    private func broken(fault: BrokenProtector.Fault) throws {
        #expect(try violations(fault) != [])
    }

    @Test("The same wrapper without a fault passes")
    func wrapped() throws {
        #expect(try violations(nil) == [])
    }
}

@Suite("The systemd credential")
struct SystemdCredentialTests {
    private let storeID = StoreID(high: 1, low: 2)

    private func withCredential(_ content: Data?, _ body: (SystemdCredential, _ path: String) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/keychain-device-secret"
            if let content {
                try content.write(to: URL(filePath: path))
                // As systemd writes it.
                try FileManager.default.setAttributes([.posixPermissions: 0o440], ofItemAtPath: path)
            }
            try body(SystemdCredential(credentialsDirectory: directory), path)
        }
    }

    @Test("A credential of 32 bytes is the device secret, unchanged")
    func reads() throws {
        let content = Data((0..<32).map { UInt8($0) })
        try withCredential(content) { credential, path in
            #expect(try credential.isPresent())
            #expect(credential.location(for: storeID) == path)
            let secret = try credential.deviceSecret(for: storeID)
            #expect(unsafe secret.withBytes { unsafe Data($0) } == content)
        }
    }

    @Test("A credential of any other length is rejected", arguments: [0, 1, 31, 33, 64])
    func wrongLength(_ byteCount: Int) throws {
        try withCredential(Data(repeating: 0x5a, count: byteCount)) { credential, path in
            let failure = #expect(throws: KeychainFailure.self) { _ = try credential.deviceSecret(for: storeID) }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.path == path && failure?.subject == .credential)
        }
    }

    @Test("The error for a missing credential contains its path")
    func missing() throws {
        try withCredential(nil) { credential, path throws in
            #expect(try credential.isPresent() == false)
            let failure = #expect(throws: KeychainFailure.self) { _ = try credential.deviceSecret(for: storeID) }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.path == path && failure?.subject == .credential)
        }
    }

    @Test("A symbolic link is followed, as in the volume of a Kubernetes Secret; a dangling one is an error, not an absent credential")
    func link() throws {
        let content = Data((0..<32).map { UInt8($0) })
        try withCredential(nil) { credential, path in
            let directory = URL(filePath: path).deletingLastPathComponent()
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "..data/keychain-device-secret")
            #expect(try credential.isPresent())
            let failure = #expect(throws: KeychainFailure.self) { _ = try credential.deviceSecret(for: storeID) }
            #expect(failure?.subject == .credential && failure?.cause == .missing)

            let data = directory.appending(path: "..data")
            try FileManager.default.createDirectory(at: data, withIntermediateDirectories: false)
            try content.write(to: data.appending(path: "keychain-device-secret"))
            let secret = try credential.deviceSecret(for: storeID)
            #expect(unsafe secret.withBytes { unsafe Data($0) } == content)
        }
    }

    @Test("A credential that cannot be looked up is not reported as missing", arguments: ["loop", "file"])
    func unknownPresence(_ name: String) throws {
        try withTemporaryDirectory { directory in
            try FileManager.default.createSymbolicLink(atPath: directory + "/loop", withDestinationPath: "loop")
            try Data().write(to: URL(filePath: directory + "/file"))
            let credential = SystemdCredential(credentialsDirectory: directory + "/" + name)
            let failure = #expect(throws: KeychainFailure.self) { try credential.isPresent() }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.path?.hasPrefix(directory) == true && failure?.subject == .credential)
        }
    }

    @Test("A relative credentials directory is an error, and no keychain is created with a key file instead")
    func relativeDirectory() throws {
        let configuration = try KeychainConfiguration(environment: ["KEYCHAIN_HOME": "/k", "CREDENTIALS_DIRECTORY": "credentials"])
        let credential = SystemdCredential(credentialsDirectory: configuration.credentialsDirectory)
        let failures = [
            #expect(throws: KeychainFailure.self) { _ = try credential.deviceSecret(for: storeID) },
            #expect(throws: KeychainFailure.self) { try credential.isPresent() },
        ]
        #expect(failures.allSatisfy { $0?.cause == .environmentVariable("CREDENTIALS_DIRECTORY") && $0?.subject == .credential })
        try withTemporaryDirectory { directory in
            let keychain = LocalKeychain(home: directory + "/home") { $0.credentialsDirectory = "credentials" }
            let failure = #expect(throws: KeychainFailure.self) { try keychain.addItem("Skroob", "12345") }
            #expect(failure?.cause == .environmentVariable("CREDENTIALS_DIRECTORY"))
            #expect(!FileManager.default.fileExists(atPath: directory + "/home/keychain.db"))
        }
    }

    @Test("In a process without a credentials directory, the credential is missing")
    func noDirectory() throws {
        let credential = SystemdCredential(credentialsDirectory: nil)
        #expect(try credential.isPresent() == false)
        let failure = #expect(throws: KeychainFailure.self) { _ = try credential.deviceSecret(for: storeID) }
        #expect(failure?.status == .notAvailable)
        #expect(failure?.subject == .credential && failure?.cause == .missing)
    }
}

@Suite("A keychain whose protector is a TPM")
struct ChipProtectorTests {
    @Test("While the secret is cached, the report shows that the TPM was cleared, and the protector can be changed")
    func clearedWhileOpen() throws {
        try ProtectedHome.with { home in
            try home.keychain(newWith: .tpm2).addItem("there", "one")
            func isPresent() throws -> Bool? {
                switch try home.keychain().report(queriesTPM: true).store?.tpmState {
                case .status: true
                case .other: false
                case .silent, nil: nil
                }
            }
            #expect(try isPresent() == true)
            home.chip.clear()
            #expect(try isPresent() == false)
            _ = try home.keychain().setProtector(.keyFile, passcode: nil, creatingRecoveryKey: false)
            #expect(try home.keychain().secret(of: "there") == "one")
        }
    }

    @Test("The keychain is created without a key file, and the unsealed secret is cached in every lock state")
    func held() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.addItem("there", "one")
            #expect(try home.keyFiles() == [] && keychain.protectorKind == .tpm2)
            let count = home.chip.unsealCount
            #expect(try home.keychain().secret(of: "there") == "one" && home.chip.unsealCount == count)
            try keychain.set("Druidia")
            try keychain.lock(.everything)
            home.chip.setReachable(false)
            #expect(try home.keychain().sessionStatus().state == .neverUnlocked)
            home.chip.setReachable(true)
            try home.forgetWhatIsHeld(keychain)
            let countBefore = home.chip.unsealCount
            #expect(try home.keychain().sessionStatus().state == .neverUnlocked && home.chip.unsealCount == countBefore + 1)
        }
    }

    @Test("A cached secret that no longer opens the keybag is discarded, and the TPM is used")
    func heldOfAnotherKeybag() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.addItem("there", "one")
            let id = try #require(try keychain.report().store?.id)
            let holder = ProcessMemoryKeyHolder(storeID: id, epochSource: { LockEpoch(rawValue: 0) })
            let wrong = try sealed([UInt8](repeating: 7, count: 32), for: home, id)
            let tooLong = try sealed([UInt8](repeating: 7, count: 33), for: home, id)
            for bytes in [[UInt8](repeating: 7, count: 61), wrong, tooLong, Array(wrong.dropLast()), [1], [2]] {
                try holder.hold(bytes, in: .device, timeoutSeconds: nil)
                let count = home.chip.unsealCount
                #expect(try home.keychain().secret(of: "there") == "one" && home.chip.unsealCount == count + 1)
            }
        }
    }

    /// Seals a device secret for a holder, as a process can that reads the store.
    private func sealed(_ bytes: [UInt8], for home: ProtectedHome, _ id: StoreID) throws -> [UInt8] {
        let copies = try SQLiteItemStore(openingAt: home.path + "/keychain.db").keybag().copies
        let record = try #require(try KeybagDocument.protectorHints(in: copies).first)
        let cipher = try HolderPayloadCipher(sealedDeviceSecret: record.sealedDeviceSecret(), storeID: id)
        // Here and below: the bytes are copied within the closure.
        let secret = try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
        let payload = try cipher.seal(secret, in: .device, of: KeybagIdentity(generation: 0), at: .unused)
        return unsafe payload.withBytes { unsafe Array($0) }
    }

    @Test("The cached device secret opens only with the store's file, and not with that of another store")
    func sealedInHolder() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.addItem("there", "one")
            let id = try #require(try keychain.report().store?.id)
            let holder = ProcessMemoryKeyHolder(storeID: id, epochSource: { LockEpoch(rawValue: 0) })
            let load = { () throws in
                let held = try holder.load(.device, for: .inspection, lockEpoch: .unused)
                switch consume held {
                case .none: return [UInt8]()
                case .some(let held): return unsafe held.secret.withBytes { unsafe Array($0) }
                }
            }
            let payload = try load()
            let copies = try SQLiteItemStore(openingAt: home.path + "/keychain.db").keybag().copies
            let object = try #require(try KeybagDocument.protectorHints(in: copies).first).sealedDeviceSecret()
            let secret = try home.chip.unseal(object, authorization: .none)
            let bytes = unsafe secret.withBytes { unsafe Array($0) }
            #expect(payload.count == 61)
            #expect(payload.firstRange(of: bytes.prefix(16)) == nil && payload.firstRange(of: bytes.suffix(16)) == nil)
            // The planted fault is found.
            try holder.hold(payload.prefix(29) + bytes, in: .device, timeoutSeconds: nil)
            #expect(try load().firstRange(of: bytes) != nil)
            // With the file, and no other, the payload yields the secret.
            try holder.hold(payload, in: .device, timeoutSeconds: nil)
            let count = home.chip.unsealCount
            #expect(try home.keychain().secret(of: "there") == "one" && home.chip.unsealCount == count)
            let other = try home.chip.seal(secret, authorization: .none)
            let sealedPayload = try unsafe SecretBytes(byteCount: payload.count) { unsafe $0.copyBytes(from: payload) }
            let opened = try HolderPayloadCipher(sealedDeviceSecret: other, storeID: id)
                .open(sealedPayload, in: .device, of: KeybagIdentity(generation: 0), at: .unused)
            let isOpened =
                switch consume opened {
                case .none: false
                case .some: true
                }
            #expect(!isOpened)
        }
    }

    @Test("The cached secret is removed when the keychain gets another protector")
    func notHeldAfterMove() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.addItem("there", "one")
            let id = try #require(try keychain.report().store?.id)
            #expect(ProcessMemoryKeys.shared.isHolding(.device, of: id))
            _ = try keychain.protect(.keyFile)
            #expect(!ProcessMemoryKeys.shared.isHolding(.device, of: id))
            #expect(try home.keychain().secret(of: "there") == "one")
        }
    }

    @Test("The TPM counts wrong passcodes; during its lockout, prompts and unlocks report when to try again")
    func lockedOut() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.set("Druidia")
            try keychain.lock(.everything)
            for count: UInt32 in 1...3 {
                #expect(throws: KeychainFailure(.authFailed, "")) { try keychain.unlock(with: "Spaceball") }
                #expect(try home.chip.status().failedTryCount == count)
            }
            let failure = #expect(throws: KeychainFailure.self) { try keychain.unlock(with: "Druidia") }
            #expect(failure?.status == .authFailed && failure?.refusal == .lockedOut(seconds: 600))
            guard case .status(let status) = try keychain.report(queriesTPM: true).store?.tpmState else {
                Issue.record("no status")
                return
            }
            #expect(status.isLockedOut && status.failedTryCount == 3)
        }
    }

    @Test("The passcode can be changed, removed and set again, and a policy with a higher cost raises its cost")
    func passcodeChanges() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.addItem("there", "one")
            try keychain.set("Druidia")
            try keychain.changePasscode(
                from: Passcode(text: "Druidia"), to: Passcode(text: "Vespa-1"), rotatingKeys: true, autoLock: .standard)
            try home.forgetWhatIsHeld(keychain)
            #expect(throws: KeychainFailure(.authFailed, "")) { try keychain.unlock(with: "Druidia") }
            let costly = try LocalKeychain.withCheapPasscode(home: home.path, holder: .processMemory, policyMebibytes: 2) {
                $0.sealingDevice = home.chip
            }
            try costly.unlock(with: "Vespa-1")
            let raised = try #require(try costly.report().store?.keybagGeneration)
            #expect(try home.keychain().secret(of: "there") == "one")
            try costly.unlock(with: "Vespa-1")
            #expect(try costly.report().store?.keybagGeneration == raised)
            let passcode = try Passcode(text: "Vespa-1")
            try costly.removePasscode(passcode, deleting: costly.passcodeRemoval(passcode))
            #expect(try home.keychain().secret(of: "there") == "one")
        }
    }
}
