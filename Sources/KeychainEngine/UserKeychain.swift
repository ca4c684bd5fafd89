// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainIPC
internal import Synchronization

/// The keychain of the process's user: a store in files of this user, or one that keychaind keeps.
///
/// The file at the store's path decides, and nothing else does: a store is opened by the engine of this process, and a signpost leads to
/// keychaind. A call that meets a signpost is performed by keychaind, or fails. Without one, there is no cost: the signpost is met where the
/// engine opens the store, and a process that has the store open notices that its file was replaced.
package final class UserKeychain: Sendable {
    /// A keychain with everything that both implementations offer.
    package typealias Implementation = Keychain & KeychainSessionProviding & KeychainAuthenticating & ObservableKeychain

    private struct Kept {
        let storeID: StoreID
        let keychain: DaemonKeychain
    }

    /// The engine of this process, for what keychaind does not offer.
    package let local: LocalKeychain
    private let connector: DaemonClient.Connector
    /// Whether `kept` is set, which each call reads.
    private let isKept = Atomic(false)
    private let kept = Mutex<Kept?>(nil)

    /// `connector` connects to keychaind; only tests have another one.
    package init(
        _ local: LocalKeychain,
        connector: @escaping DaemonClient.Connector = DaemonClient.connector(toSocketAt: DaemonClient.standardSocketPath)
    ) {
        self.local = local
        self.connector = connector
    }

    /// Runs `body` on the keychain that the file at the store's path names.
    ///
    /// A call that one of them refuses, because the other one has the keychain by now, is performed by that one. It changed nothing before.
    private func perform<Result>(
        _ body: (any Implementation) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        guard isKept.load(ordering: .acquiring) else {
            do throws(KeychainFailure) {
                return try body(local)
            } catch {
                guard case .keptByDaemon(let storeID) = error.cause else { throw error }
                return try body(keep(storeID))
            }
        }
        guard let keychain = kept.withLock({ $0?.keychain }) else { return try body(local) }
        do throws(KeychainFailure) {
            return try body(keychain)
        } catch {
            // Also if keychaind is not there: it may have been removed after it released the keychain.
            guard error.cause == .notKept || error.cause == .missing else { throw error }
            return try performReleased(refusal: error, body)
        }
    }

    /// Runs `body` after keychaind has refused a keychain that it does not keep.
    ///
    /// Throws `refusal` if the signpost leads there nevertheless.
    private func performReleased<Result>(
        refusal: KeychainFailure, _ body: (any Implementation) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let former = kept.withLock { $0?.storeID }
        do throws(KeychainFailure) {
            let result = try body(local)
            isKept.store(false, ordering: .releasing)
            return result
        } catch {
            guard case .keptByDaemon(let storeID) = error.cause else {
                // The store was opened.
                isKept.store(false, ordering: .releasing)
                throw error
            }
            guard storeID != former else { throw refusal }
            return try body(keep(storeID))
        }
    }

    private func keep(_ storeID: StoreID) -> DaemonKeychain {
        kept.withLock { kept in
            if let kept, kept.storeID == storeID {
                isKept.store(true, ordering: .releasing)
                return kept.keychain
            }
            let client = DaemonClient(entitlements: local.entitlements, storeID: storeID, connector: connector)
            let keychain = DaemonKeychain(client)
            kept = Kept(storeID: storeID, keychain: keychain)
            isKept.store(true, ordering: .releasing)
            return keychain
        }
    }

    /// Returns the keychain that keychaind keeps; nil if there is no signpost.
    ///
    /// Throws the errors of opening the keychain, but not `.itemNotFound`.
    package func keptKeychain() throws(KeychainFailure) -> DaemonKeychain? {
        do throws(KeychainFailure) {
            try local.perform(creating: false) { _ in }
        } catch {
            if case .keptByDaemon(let storeID) = error.cause { return keep(storeID) }
            guard error.status == .itemNotFound else { throw error }
        }
        isKept.store(false, ordering: .releasing)
        return nil
    }
}

extension UserKeychain: TransactionalKeychain {
    package func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        try perform { keychain throws(KeychainFailure) in try keychain.add(request) }
    }

    package func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try perform { keychain throws(KeychainFailure) in try keychain.copyMatching(request) }
    }

    package func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try perform { keychain throws(KeychainFailure) in try keychain.update(request) }
    }

    package func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try perform { keychain throws(KeychainFailure) in try keychain.delete(request) }
    }

    /// Throws `.unimplemented` where keychaind keeps the keychain.
    package func transaction(_ body: (any Keychain) -> Bool) throws(KeychainFailure) -> Bool {
        try perform { keychain throws(KeychainFailure) in
            guard let keychain = keychain as? any TransactionalKeychain else {
                throw KeychainFailure(.unimplemented, "keychaind has no transactions of several calls")
            }
            return try keychain.transaction(body)
        }
    }
}

extension UserKeychain: KeychainSessionProviding {
    package func sessionStatus() throws(KeychainFailure) -> SessionStatus {
        try perform { keychain throws(KeychainFailure) in try keychain.sessionStatus() }
    }

    package func unlock(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try perform(passcode) { keychain, passcode throws(KeychainFailure) in try keychain.unlock(passcode, autoLock: autoLock) }
    }

    package func lock(_ extent: LockExtent) throws(KeychainFailure) {
        try perform { keychain throws(KeychainFailure) in try keychain.lock(extent) }
    }

    package func setAutoLock(_ autoLock: AutoLock) throws(KeychainFailure) {
        try perform { keychain throws(KeychainFailure) in try keychain.setAutoLock(autoLock) }
    }

    package func setPasscode(_ passcode: borrowing Passcode, autoLock: AutoLock) throws(KeychainFailure) {
        try perform(passcode) { keychain, passcode throws(KeychainFailure) in try keychain.setPasscode(passcode, autoLock: autoLock) }
    }

    package func changePasscode(
        from current: borrowing Passcode, to new: borrowing Passcode, rotatingKeys: Bool, autoLock: AutoLock
    ) throws(KeychainFailure) {
        let copy = try new.shared()
        try perform(current) { keychain, current throws(KeychainFailure) in
            try keychain.changePasscode(
                from: current, to: try Passcode(normalized: try copy.copy()), rotatingKeys: rotatingKeys, autoLock: autoLock)
        }
    }

    package func passcodeRemoval(_ passcode: borrowing Passcode) throws(KeychainFailure) -> PasscodeRemoval {
        try perform(passcode) { keychain, passcode throws(KeychainFailure) in try keychain.passcodeRemoval(passcode) }
    }

    package func removePasscode(_ passcode: borrowing Passcode, deleting removal: PasscodeRemoval) throws(KeychainFailure) {
        try perform(passcode) { keychain, passcode throws(KeychainFailure) in try keychain.removePasscode(passcode, deleting: removal) }
    }

    /// A closure cannot capture a passcode that is borrowed.
    private func perform<Result>(
        _ passcode: borrowing Passcode, _ body: (any Implementation, borrowing Passcode) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let copy = try passcode.shared()
        return try perform { keychain throws(KeychainFailure) in try body(keychain, try Passcode(normalized: try copy.copy())) }
    }
}

extension UserKeychain: KeychainAuthenticating {
    package func requireCanAuthenticate(
        _ constraint: AccessControl.Constraint, in context: AuthenticationContext?
    ) throws(KeychainFailure) {
        try perform { keychain throws(KeychainFailure) in try keychain.requireCanAuthenticate(constraint, in: context) }
    }

    package func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: ItemAccessibility?, _ authentication: Authentication
    ) throws(KeychainFailure) {
        try perform { keychain throws(KeychainFailure) in try keychain.authenticate(constraint, of: accessibility, authentication) }
    }
}

extension UserKeychain: ObservableKeychain {
    package func observeChanges(_ onChange: @escaping @Sendable () -> Void) throws(KeychainFailure) -> any ChangeObservation {
        let observation = Observation(self, onChange)
        try observation.start()
        return observation
    }

    /// Observes the files in any case, which show when keychaind takes the keychain over or gives it back, and keychaind meanwhile.
    private final class Observation: ChangeObservation {
        private struct State {
            var files: (any ChangeObservation)?
            var daemon: (any ChangeObservation)?
            var isCanceled = false
        }

        private let keychain: UserKeychain
        private let onChange: @Sendable () -> Void
        private let state = Mutex(State())

        init(_ keychain: UserKeychain, _ onChange: @escaping @Sendable () -> Void) {
            self.keychain = keychain
            self.onChange = onChange
        }

        deinit { cancel() }

        func start() throws(KeychainFailure) {
            let files = try keychain.local.observeChanges { [weak self] in
                guard let self else { return }
                // A failure to reach keychaind is reported by the calls that the change causes.
                try? observeDaemonIfKept()
                onChange()
            }
            state.withLock { $0.files = files }
            try observeDaemonIfKept()
        }

        private func observeDaemonIfKept() throws(KeychainFailure) {
            var observation: (any ChangeObservation)?
            // A store that cannot be opened is observed as a file.
            if let kept = try? keychain.keptKeychain() { observation = try kept.observeChanges(onChange) }
            let ended = state.withLock { state in
                defer { state.daemon = state.isCanceled ? nil : observation }
                return state.isCanceled ? [observation, state.daemon] : [state.daemon]
            }
            for observation in ended { observation?.cancel() }
        }

        func cancel() {
            let ended = state.withLock { state in
                state.isCanceled = true
                defer { (state.files, state.daemon) = (nil, nil) }
                return [state.files, state.daemon]
            }
            for observation in ended { observation?.cancel() }
        }
    }
}
