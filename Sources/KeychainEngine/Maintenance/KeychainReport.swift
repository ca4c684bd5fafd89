// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore

/// A description of a keychain for `valet status`, read without changing anything.
package struct KeychainReport: Sendable {
    package struct Store: Sendable {
        package let id: StoreID
        package let itemCount: Int
        package let quarantinedCount: Int
        package let keybagGeneration: UInt64
        /// How many of the two copies of the keybag are damaged.
        ///
        /// One sound copy is sufficient.
        package let damagedKeybagCopyCount: Int
        package let protector: DeviceProtectorKind
        /// Where the protector keeps the device secret.
        package let protectorLocation: String
        /// The state of the TPM, if it was queried; nil for other protectors.
        package let tpmState: TPMState?
        package let hasRecoveryKey: Bool
        /// A key file that remained when the keychain was moved to another protector.
        ///
        /// It opens older copies of the keychain.
        package let leftoverKeyFile: String?
        /// Whether deleted bytes of the database may still be in its write-ahead log until a later opening scrubs them.
        package let isScrubPending: Bool
        package let session: SessionStatus
        /// Why the anchor cannot be used, so that an older copy of the file would not be detected; nil if it can.
        package let anchorRefusal: String?
        /// How many rows are under a class key from before the last change of keys.
        ///
        /// The next unlock reseals them.
        package let pendingRewrapCount: Int
    }

    package enum TPMState: Sendable {
        case status(SealingDeviceStatus)
        /// Another TPM, or one that was cleared: the keychain is open only until the system restarts.
        case other(SealingDeviceStatus)
        /// The TPM did not answer. The keychain is open because its device secret is held until the system restarts.
        case silent(String)
    }

    package let storePath: String
    /// Nil if there is no keychain yet; the first write creates one.
    package let store: Store?
    /// The file systems of the keychain and of its key file; nil if another protector holds the device secret.
    ///
    /// Without a keychain, those where the first write would create them.
    package let placement: KeyPlacement?
    /// Whether keys stay out of swap; false if the kernel refused to lock memory for them.
    package let isKeyMemoryLocked: Bool
    package let applicationIdentifier: String
    package let accessGroups: [String]
}

extension LocalKeychain {
    /// Describes the keychain without changing or creating it.
    ///
    /// With `queriesTPM` it also asks the TPM, which is slow.
    ///
    /// Throws the errors of opening the keychain if it exists and cannot be used, and `.unimplemented` for a keychain in memory.
    package func report(queriesTPM: Bool = false) throws(KeychainFailure) -> KeychainReport {
        let configuration = try configuration()
        let store: KeychainReport.Store?
        do throws(KeychainFailure) {
            store = try performOnCurrentKeybag { opened throws(KeychainFailure) in
                try Self.describe(opened, configuration, queriesTPM: queriesTPM)
            }
        } catch  where error.status == .itemNotFound {
            store = nil
        }
        return KeychainReport(
            storePath: configuration.storePath, store: store,
            placement: try placement(of: store, configuration), isKeyMemoryLocked: SecretArena.isFullyLocked,
            applicationIdentifier: entitlements.applicationIdentifier, accessGroups: entitlements.accessGroups
        )
    }

    private func placement(of store: KeychainReport.Store?, _ configuration: KeychainConfiguration) throws(KeychainFailure) -> KeyPlacement?
    {
        let protector: DeviceProtectorKind
        if let store { protector = store.protector } else { protector = try configuration.newStoreProtector() }
        return protector == .keyFile ? configuration.keyPlacement : nil
    }

    private static func describe(
        _ opened: OpenKeychain, _ configuration: KeychainConfiguration, queriesTPM: Bool
    ) throws(KeychainFailure) -> KeychainReport.Store {
        let store = try opened.fileStore()
        let (itemCount, quarantinedCount) = try store.read { reading throws(KeychainFailure) in
            (try reading.itemCount(), try reading.quarantinedRows().count)
        }
        return KeychainReport.Store(
            id: store.storeID, itemCount: itemCount, quarantinedCount: quarantinedCount,
            keybagGeneration: opened.keybag.keybagGeneration, damagedKeybagCopyCount: opened.keybag.damagedCopyCount,
            protector: opened.protector.kind, protectorLocation: opened.protector.location(for: store.storeID),
            tpmState: queriesTPM ? tpmState(of: opened) : nil, hasRecoveryKey: opened.keybag.hasRecoveryKey,
            leftoverKeyFile: leftoverKeyFile(of: opened, configuration),
            isScrubPending: try store.isScrubPending(), session: try opened.sessionStatus(),
            anchorRefusal: store.anchorRefusal, pendingRewrapCount: try pendingRewrapCount(opened)
        )
    }

    private static func tpmState(of opened: OpenKeychain) -> KeychainReport.TPMState? {
        guard let protector = opened.protector as? TPMProtector else { return nil }
        do throws(SealingFailure) {
            let status = try protector.device.status()
            return try protector.isSealedByPresentTPM() ? .status(status) : .other(status)
        } catch {
            return .silent(KeychainFailure(error).reason)
        }
    }

    private static func leftoverKeyFile(of opened: OpenKeychain, _ configuration: KeychainConfiguration) -> String? {
        guard opened.protector.kind != .keyFile else { return nil }
        return ProtectorSelection(configuration: configuration).keyFile.leftoverPath(of: opened.keybag.storeID)
    }

    private static func pendingRewrapCount(_ opened: OpenKeychain) throws(KeychainFailure) -> Int {
        guard opened.keybag.isPasscodeSet, opened.keybag.holdsOlderGenerations else { return 0 }
        return try opened.store.read { reading throws(KeychainFailure) in
            try reading.rowCount(underPasscodeKeysBelow: opened.keybag.currentPasscodeGeneration)
        }
    }
}
