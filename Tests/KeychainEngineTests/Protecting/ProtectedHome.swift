// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting

/// A directory with a keychain, a credential as systemd gives one, and a chip in memory.
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
        try LocalKeychain.cheaplyUnlocked(home: path, holder: .processMemory) { configuration in
            configuration.credentialsDirectory = credentials
            configuration.sealingDevice = other ?? chip
            configuration.protectorForNewStore = protector
        }
    }

    /// What is held for this store in this process goes, the device secret too: as at the end of the process.
    func forgetWhatIsHeld(_ keychain: LocalKeychain) throws {
        guard let id = try keychain.report().store?.id else { return }
        let holder = ProcessMemoryKeyHolder(storeID: id, epochSource: { LockEpoch(rawValue: 0) })
        for slot in KeyHolderSlot.allCases { try holder.remove(slot) }
    }

    /// The names of the key files that are there.
    func keyFiles() -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path + "/keys")) ?? []
        // All begin with the store's identifier.
        return names.map { String($0.dropFirst(32)) }.sorted()
    }
}

extension LocalKeychain {
    var protectorKind: DeviceProtectorKind? { get throws { try report().store?.protector } }

    func protect(_ kind: DeviceProtectorKind, _ passcode: String? = nil, makingRecoveryKey: Bool = false) throws -> SharedSecretBytes? {
        let code: Passcode? = if let passcode { try Passcode(text: passcode) } else { nil }
        return try setProtector(kind, passcode: code, makingRecoveryKey: makingRecoveryKey)
    }

    func recover(_ key: borrowing SecretBytes, _ kind: DeviceProtectorKind = .keyFile, _ passcode: String? = nil) throws {
        let code: Passcode? = if let passcode { try Passcode(text: passcode) } else { nil }
        try useRecoveryKey(key, protector: kind, passcode: code)
    }
}
