// SPDX-License-Identifier: Apache-2.0
internal import Synchronization

/// Carries what a person's answers released from one call to the next: what an `LAContext` is made of.
///
/// What it carries belongs to the keychain that gave it, and goes as soon as that says so.
package final class AuthenticationContext: Sendable {
    /// What the program set.
    package struct Settings: Hashable, Sendable {
        package var isInteractionAllowed = true
        package var reason: String?
        package var cancelTitle: String?
        /// How long one answer serves; nil: until the keychain locks.
        package var reuseSeconds: Double?

        package init() {}
    }

    private struct Held {
        let release: PresenceRelease
        /// Whether the keychain still lets it be used.
        let isValid: @Sendable () -> Bool
    }

    private struct State {
        var settings = Settings()
        var held: [Held] = []
        var applicationPassword: ApplicationPassword?
        var isInvalidated = false
    }

    private let state = Mutex(State())

    /// Nobody but one call has it, and it goes with that call.
    package let isCallScoped: Bool

    package init(callScoped isCallScoped: Bool = false) {
        self.isCallScoped = isCallScoped
    }

    package var settings: Settings {
        get { state.withLock { $0.settings } }
        set { state.withLock { $0.settings = newValue } }
    }

    package var isInvalidated: Bool { state.withLock { $0.isInvalidated } }

    /// Lets go of everything, for good.
    package func invalidate() {
        state.withLock { state in
            state.isInvalidated = true
            state.held = []
            state.applicationPassword = nil
        }
    }

    // MARK: The passcode

    /// What is at hand for one keychain.
    package func keys(of storeID: StoreID, presencePublicKey: [UInt8]?) -> ConstraintKeys {
        let (candidates, password) = state.withLock { state in
            (state.held.filter { $0.release.storeID == storeID }, state.applicationPassword)
        }
        var keys = ConstraintKeys(applicationPassword: password)
        for held in candidates {
            // Asked outside the lock: it may read the store.
            if held.release.publicKey == presencePublicKey, held.isValid() {
                keys.presence = held.release
            } else {
                drop(held.release)
            }
        }
        return keys
    }

    /// Carries `release` in the place of what it had of the same keychain, as long as `isValid` says yes.
    ///
    /// An invalidated context takes nothing.
    package func hold(_ release: PresenceRelease, while isValid: @escaping @Sendable () -> Bool) {
        state.withLock { state in
            guard !state.isInvalidated else { return }
            state.held.removeAll { $0.release.storeID == release.storeID }
            state.held.append(Held(release: release, isValid: isValid))
        }
    }

    /// Lets go of what may no longer be used; false when nothing is left that could come to an end.
    package func look() -> Bool {
        for held in state.withLock({ $0.held }) where !held.isValid() { drop(held.release) }
        return isHolding
    }

    /// The classes whose keys were released by one keychain.
    package func releasedClasses(of storeID: StoreID) -> Set<Accessibility> {
        state.withLock { state in state.held.first { $0.release.storeID == storeID }?.release.classes ?? [] }
    }

    /// Whether it carries anything that a passcode released.
    package var isHolding: Bool { state.withLock { !$0.held.isEmpty } }

    private func drop(_ release: PresenceRelease) {
        state.withLock { $0.held.removeAll { $0.release === release } }
    }

    // MARK: The application password

    package var applicationPassword: ApplicationPassword? { state.withLock { $0.applicationPassword } }

    /// Nil takes it away.
    package func setApplicationPassword(_ password: ApplicationPassword?) {
        state.withLock { state in
            guard !state.isInvalidated else { return }
            state.applicationPassword = password
        }
    }

    /// Takes away a password that turned out to be wrong, unless another has taken its place.
    package func removeApplicationPassword(_ password: ApplicationPassword) {
        state.withLock { if $0.applicationPassword === password { $0.applicationPassword = nil } }
    }
}
