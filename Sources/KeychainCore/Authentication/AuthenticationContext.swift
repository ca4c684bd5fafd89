// SPDX-License-Identifier: Apache-2.0
internal import Synchronization

/// The keys that authentication released, kept from one call to the next: the basis of an `LAContext`.
///
/// Each release belongs to one keychain, which decides how long it stays valid.
package final class AuthenticationContext: Sendable {
    /// The program's settings.
    package struct Settings: Hashable, Sendable {
        package var isInteractionAllowed = true
        package var reason: String?
        package var cancelTitle: String?
        /// How long one authentication stays valid; nil: until the keychain locks.
        package var reuseSeconds: Double?

        package init() {}
    }

    private struct Held {
        let release: PresenceRelease
        /// Whether the keychain still permits its use.
        let isValid: @Sendable () -> Bool
    }

    private struct HeldBiometry {
        let release: BiometricRelease
        let isValid: @Sendable () -> Bool
    }

    private struct State {
        var settings = Settings()
        var held: [Held] = []
        var heldBiometry: HeldBiometry?
        var enrollment: (storeID: StoreID, enrollment: BiometricEnrollment)?
        var applicationPassword: ApplicationPassword?
        var isPasswordKeptByKeychain = false
        var isInvalidated = false
        var endHandler: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// The name of the context for a keychain in another process, which other programs cannot guess.
    package let token = Identifier128.random()

    /// Runs `body` on the state, under the lock; in a forked child on that of an invalidated context, without the lock.
    private func withState<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        guard !ForkDetection.isForkedChild else {
            var invalidated = State(isInvalidated: true)
            return body(&invalidated)
        }
        return state.withLock { body(&$0) }
    }

    /// Whether the context exists for a single call.
    package let isCallScoped: Bool

    package init(callScoped isCallScoped: Bool = false) {
        self.isCallScoped = isCallScoped
    }

    deinit { takeEndHandler()?() }

    /// Calls `handler` when the context is invalidated or released, in place of an earlier handler.
    ///
    /// Does nothing if the context is invalidated.
    package func setEndHandler(_ handler: @escaping @Sendable () -> Void) {
        withState { if !$0.isInvalidated { $0.endHandler = handler } }
    }

    private func takeEndHandler() -> (@Sendable () -> Void)? {
        withState { state in
            defer { state.endHandler = nil }
            return state.endHandler
        }
    }

    package var settings: Settings {
        get { withState { $0.settings } }
        set { withState { $0.settings = newValue } }
    }

    package var isInvalidated: Bool { withState { $0.isInvalidated } }

    /// Removes everything; the context stores nothing from then on.
    package func invalidate() {
        withState { state in
            state.isInvalidated = true
            state.held = []
            state.heldBiometry = nil
            state.enrollment = nil
            state.applicationPassword = nil
            state.isPasswordKeptByKeychain = false
        }
        takeEndHandler()?()
    }

    // MARK: The passcode

    /// The valid keys for one keychain.
    package func keys(of storeID: StoreID, presencePublicKey: [UInt8]?) -> ConstraintKeys {
        let (candidates, password) = withState { state in
            (state.held.filter { $0.release.storeID == storeID }, state.applicationPassword)
        }
        var keys = ConstraintKeys(applicationPassword: password)
        addBiometry(of: storeID, to: &keys)
        for held in candidates {
            // Called outside the lock: it may read the store.
            if held.release.publicKey == presencePublicKey, held.isValid() {
                keys.presence = held.release
            } else {
                remove(held.release)
            }
        }
        return keys
    }

    /// Stores `release`, replacing an earlier one of the same keychain, for as long as `isValid` returns true.
    ///
    /// Does nothing if the context is invalidated.
    package func store(_ release: PresenceRelease, while isValid: @escaping @Sendable () -> Bool) {
        withState { state in
            guard !state.isInvalidated else { return }
            state.held.removeAll { $0.release.storeID == release.storeID }
            state.held.append(Held(release: release, isValid: isValid))
        }
    }

    /// Removes releases that are no longer valid; returns whether any are left.
    package func removeExpired() -> Bool {
        for held in withState({ $0.held }) where !held.isValid() { remove(held.release) }
        if let held = withState({ $0.heldBiometry }), !held.isValid() { remove(held.release) }
        return holdsReleases
    }

    /// The classes whose keys were released by one keychain.
    package func releasedClasses(of storeID: StoreID) -> Set<ItemAccessibility> {
        withState { state in state.held.first { $0.release.storeID == storeID }?.release.classes ?? [] }
    }

    /// Whether the context contains keys that a passcode or biometry released.
    package var holdsReleases: Bool { withState { !$0.held.isEmpty || $0.heldBiometry != nil } }

    private func remove(_ release: PresenceRelease) {
        withState { $0.held.removeAll { $0.release === release } }
    }

    // MARK: Biometry

    private func addBiometry(of storeID: StoreID, to keys: inout ConstraintKeys) {
        let (enrollment, held) = withState { state in
            (
                state.enrollment?.storeID == storeID ? state.enrollment?.enrollment : nil,
                state.heldBiometry?.release.storeID == storeID ? state.heldBiometry : nil
            )
        }
        keys.enrollment = enrollment
        guard let held else { return }
        // Called outside the lock: it may read the store.
        if held.isValid() { keys.biometry = held.release } else { remove(held.release) }
    }

    /// Notes what is known of the fingers of the person.
    ///
    /// Does nothing if the context is invalidated, or if a later set of fingers was noted, by another thread.
    package func note(_ enrollment: BiometricEnrollment, of storeID: StoreID) {
        withState { state in
            guard !state.isInvalidated else { return }
            if let known = state.enrollment, known.storeID == storeID, enrollment.setID.isOlder(than: known.enrollment.setID) { return }
            state.enrollment = (storeID, enrollment)
        }
    }

    /// Stores `release`, replacing an earlier one, for as long as `isValid` returns true.
    ///
    /// Does nothing if the context is invalidated.
    package func store(_ release: BiometricRelease, while isValid: @escaping @Sendable () -> Bool) {
        withState { if !$0.isInvalidated { $0.heldBiometry = HeldBiometry(release: release, isValid: isValid) } }
    }

    private func remove(_ release: BiometricRelease) {
        withState { if $0.heldBiometry?.release === release { $0.heldBiometry = nil } }
    }

    // MARK: The application password

    package var applicationPassword: ApplicationPassword? { withState { $0.applicationPassword } }

    /// Whether there is a password, in this process or in that of the keychain.
    package var isApplicationPasswordSet: Bool { withState { $0.applicationPassword != nil || $0.isPasswordKeptByKeychain } }

    /// Whether a keychain in another process keeps a password that a person has entered there.
    package var isPasswordKeptByKeychain: Bool { withState { $0.isPasswordKeptByKeychain } }

    /// Sets or, with nil, removes the password.
    ///
    /// Does nothing if the context is invalidated.
    package func setApplicationPassword(_ password: ApplicationPassword?) {
        withState { state in
            guard !state.isInvalidated else { return }
            state.applicationPassword = password
            state.isPasswordKeptByKeychain = false
        }
    }

    /// Notes that a keychain in another process keeps a password that a person has entered there, in place of an earlier one.
    ///
    /// Does nothing if the context is invalidated.
    package func notePasswordKeptByKeychain() {
        withState { state in
            guard !state.isInvalidated else { return }
            state.applicationPassword = nil
            state.isPasswordKeptByKeychain = true
        }
    }

    /// Removes a password that turned out to be wrong, unless it was replaced meanwhile.
    package func removeApplicationPassword(_ password: ApplicationPassword) {
        withState { if $0.applicationPassword === password { $0.applicationPassword = nil } }
    }
}
