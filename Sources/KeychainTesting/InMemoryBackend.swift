// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Keybag
package import KeychainCore
internal import KeychainEngine

/// A keychain over a store in memory, with the engine's own rules, keys and lock.
///
/// Several programs can share one: see `entitled(to:)`.
package final class MemoryKeychain: Keychain, KeychainSessionProviding, KeychainAuthenticating {
    /// What the programs share.
    struct Parts: Sendable {
        let store: InMemoryItemStore
        let protector: InMemoryProtector
        let holder: any KeyHolder
        let clock: any WallClock
        var policy: PasscodePolicy
        let passcodes = PasscodeHistory()
        /// Who is asked; nobody is there unless a test says so.
        let presence = ScriptedPresenceVerifier()
        let time: any ContinuousTime
        var faults = FaultQueue()

        /// The same keychain, for the test: nothing goes wrong for it, and any passcode is long enough.
        var withoutFaults: Parts {
            var parts = self
            parts.faults = FaultQueue()
            parts.policy.minimumLength = 1
            return parts
        }
    }

    let parts: Parts

    package var store: InMemoryItemStore { parts.store }

    /// How many calls have their part in a question to the person.
    package var promptParticipantCount: Int { access.prompts.participantCount }

    /// Who is asked.
    package var person: ScriptedPresenceVerifier { parts.presence }

    let access: KeychainAccess<InMemoryItemStore>

    init(parts: Parts, entitlements: Entitlements) {
        self.parts = parts
        access = KeychainAccess(
            passcodePolicy: { parts.policy },
            prompting: Prompting(verifier: parts.presence, requester: entitlements.applicationIdentifier, time: parts.time),
            opening: { _ throws(KeychainFailure) in try Self.open(parts, entitlements) },
            closing: { _ in })
    }

    private static func open(
        _ parts: Parts, _ entitlements: Entitlements
    ) throws(KeychainFailure) -> OpenKeychain<InMemoryItemStore> {
        let stored = try parts.store.read { reading throws(KeychainFailure) in try reading.keybag() }
        let storeID = parts.protector.storeID
        let keybag = try OpenKeybag(
            copies: stored.copies, storeID: storeID, deviceSecret: try parts.protector.deviceSecret(for: storeID), holder: parts.holder,
            applicationPasswordCost: parts.policy.cost)
        // What goes wrong concerns items and the passcode; opening and what the lock asks for go past it.
        let keychain = SealedKeychain(
            store: FaultyItemStore(base: parts.store, faults: parts.faults), keys: keybag, cipher: keybag.cipher, clock: parts.clock,
            entitlements: entitlements, log: { _ in })
        return OpenKeychain(
            store: parts.store, keybag: keybag, keychain: keychain, protector: parts.protector, holder: parts.holder,
            isKeybagCurrent: true)
    }

    /// The same keychain, as a program with other entitlements sees it.
    func entitled(to entitlements: Entitlements) -> MemoryKeychain {
        MemoryKeychain(parts: parts, entitlements: entitlements)
    }

    // MARK: Keychain

    package func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        try perform(.add, request) { keychain, request throws(KeychainFailure) in
            try keychain.add(request)
        }
    }

    package func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try perform(.read, request) { keychain, request throws(KeychainFailure) in
            try keychain.copyMatching(request)
        }
    }

    package func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try perform(.change, request) { keychain, request throws(KeychainFailure) in
            try keychain.update(request)
        }
    }

    package func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try perform(.delete, request) { keychain, request throws(KeychainFailure) in
            try keychain.delete(request)
        }
    }

    private func perform<Request: AuthenticatedRequest, Result>(
        _ action: AuthenticatedAction, _ request: Request, _ body: (SealedKeychain, Request) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try access.perform(creating: true, action, request) { opened, request throws(KeychainFailure) in
            try body(opened.keychain, request)
        }
    }

    // MARK: KeychainAuthenticating

    package func requireCanAuthenticate(
        _ constraint: AccessControl.Constraint, in context: AuthenticationContext?
    ) throws(KeychainFailure) {
        try access.requireCanAuthenticate(constraint, in: context)
    }

    package func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: Accessibility?, _ authentication: Authentication
    ) throws(KeychainFailure) {
        try access.authenticate(constraint, of: accessibility, authentication)
    }

    // MARK: KeychainSessionProviding

    package func sessionStatus() throws(KeychainFailure) -> SessionStatus {
        try access.sessionStatus(newKeychainHolder: parts.holder.kind)
    }

    package func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try access.unlock(passcode, autoLock: autoLock)
    }

    package func lock(_ extent: LockExtent) throws(KeychainFailure) { try access.lock(extent) }

    package func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure) { try access.setAutoLock(autoLock) }

    package func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try parts.passcodes.note(passcode)
        try access.setPasscode(passcode, autoLock: autoLock)
    }

    package func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure) {
        try parts.passcodes.note(new)
        try access.changePasscode(from: current, to: new, rotatingKeys: rotatingKeys, autoLock: autoLock)
    }

    package func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval {
        try access.passcodeRemoval(passcode)
    }

    package func removePasscode(_ passcode: borrowing Passcode, deleting removal: PasscodeRemoval) throws(KeychainFailure) {
        try access.removePasscode(passcode, deleting: removal)
    }
}

/// A device secret in memory, made for one keychain and gone with it.
package final class InMemoryProtector: DeviceProtector {
    package let storeID = StoreID.random()
    private let secret: SecretBytes

    package init() throws(KeychainFailure) {
        secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
    }

    package var kind: DeviceProtectorKind { .keyFile }

    package func location(for storeID: StoreID) -> String { "memory" }

    package func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        guard storeID == self.storeID else { throw KeychainFailure(.notAvailable, "the device secret in memory is another store's") }
        // The bytes are copied within the closure.
        return try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
    }
}
#endif
