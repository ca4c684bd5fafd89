// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Keybag
package import KeychainCore
internal import KeychainEngine

/// A keychain in memory, as one program sees it: the engine's rules, encryption, and lock, without a file.
///
/// Several programs can share one: see `InMemoryKeychain.sharedWithProgram(entitledTo:)`.
struct InMemoryBackend: KeychainBackend {
    /// The state that the programs share.
    struct Storage: Sendable {
        let store: InMemoryItemStore
        let protector: InMemoryProtector
        var holder: any KeyHolder
        let clock: any WallClock & ContinuousTime
        let passcodes = PasscodeHistory()
        /// Answers prompts.
        ///
        /// Without scripted answers, no prompt can be shown.
        let person = ScriptedPresencePrompter()
        /// Its own, because this person sees no other keychain's prompts: otherwise a test with an open prompt would hold up all others.
        let promptLock = TimedLock()
        let faults = FaultQueue()
    }

    let storage: Storage
    let entitlements: Entitlements
    private let faults: FaultQueue
    private let policy: PasscodePolicy

    /// The program under test: injected faults and the rules for passcodes apply to it.
    init(storage: Storage, entitlements: Entitlements) {
        self.init(storage, entitlements, storage.faults, .inMemory)
    }

    /// The test itself: no faults occur, and any passcode is long enough.
    static func unrestricted(_ storage: Storage, entitlements: Entitlements) -> InMemoryBackend {
        var policy = PasscodePolicy.inMemory
        policy.minimumLength = 1
        return InMemoryBackend(storage, entitlements, FaultQueue(), policy)
    }

    private init(_ storage: Storage, _ entitlements: Entitlements, _ faults: FaultQueue, _ policy: PasscodePolicy) {
        self.storage = storage
        self.entitlements = entitlements
        self.faults = faults
        self.policy = policy
    }

    var promptSettings: PromptSettings {
        PromptSettings(
            prompter: storage.person, requester: entitlements.applicationIdentifier, time: storage.clock, promptLock: storage.promptLock)
    }

    var newKeychainHolder: KeyHolderKind { storage.holder.kind }

    func passcodePolicy() throws(KeychainFailure) -> PasscodePolicy { policy }

    func recordNewPasscode(_ passcode: borrowing Passcode) throws(KeychainFailure) { try storage.passcodes.record(passcode) }

    func watchContent(_ onEvent: @escaping @Sendable (ContentEvent) -> ContentFinding) -> any ContentWatch {
        storage.store.observe { _ = onEvent(.written) }
    }

    func announceUnlock(of keychain: OpenKeychain) { storage.store.notifyObservers() }

    func contentVersion(of keychain: OpenKeychain) -> ContentVersion { storage.store.contentVersion() }

    /// There always is a keychain: `creating` has no effect.
    func open(creating: Bool) throws(KeychainFailure) -> OpenKeychain {
        let stored = try storage.store.read { reading throws(KeychainFailure) in try reading.keybag() }
        let storeID = storage.protector.storeID
        let keybag = try OpenKeybag(
            copies: stored.copies, storeID: storeID, deviceSecret: try storage.protector.deviceSecret(for: storeID),
            holder: storage.holder, applicationPasswordCost: policy.cost)
        // Faults concern items and changes of the passcode. Opening and locking use the store itself.
        let keychain = SealedKeychain(
            store: FaultyItemStore(base: storage.store, faults: faults), keys: keybag, cipher: keybag.cipher, clock: storage.clock,
            entitlements: entitlements, log: { _ in })
        return OpenKeychain(
            store: storage.store, keybag: keybag, keychain: keychain, protector: storage.protector, holder: storage.holder)
    }
}

extension InMemoryBackend.Storage {
    /// Makes an empty keychain; `clock` is used for dates, auto-lock, and the reuse of authentications.
    init(clock: any WallClock & ContinuousTime) throws(KeychainFailure) {
        let protector = try InMemoryProtector()
        let document = try OpenKeybag.make(
            storeID: protector.storeID, deviceSecret: try protector.deviceSecret(for: protector.storeID),
            protector: KeybagDocument.ProtectorRecord(kind: .keyFile))
        let store = InMemoryItemStore(
            keybag: StoredKeybag(generation: document.generation, copies: [document.encoded, document.encoded]))
        let holder = ProcessMemoryKeyHolder(
            storeID: protector.storeID,
            epochSource: { () throws(KeychainFailure) in try store.lockEpoch() }, keys: ProcessMemoryKeys(time: clock))
        self.init(store: store, protector: protector, holder: holder, clock: clock)
    }
}

extension PasscodePolicy {
    /// The rules of an in-memory keychain, at the lowest cost: its passcodes protect nothing.
    fileprivate static let inMemory = PasscodePolicy(cost: .lowest)
}

/// A device secret in memory, created for one keychain and removed with it.
package final class InMemoryProtector: DeviceProtector {
    package let storeID = StoreID.random()
    private let secret: SecretBytes

    package init() throws(KeychainFailure) {
        secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
    }

    package var kind: DeviceProtectorKind { .keyFile }

    package func location(for storeID: StoreID) -> String { "memory" }

    package func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        guard storeID == self.storeID else {
            throw KeychainFailure(.notAvailable, "the device secret in memory is another store's", subject: .keyFile, cause: .otherStore)
        }
        // The bytes are copied within the closure.
        return try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
    }
}
#endif
