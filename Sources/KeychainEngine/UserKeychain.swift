// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainIPC
internal import KeychainSystem
internal import Synchronization

/// The keychain of the process's user: a store in files of this user, or one that keychaind keeps.
///
/// The file at the store's path decides, and nothing else does: a store is opened by the engine of this process, and a signpost leads to
/// keychaind. A call that meets a signpost is performed by keychaind, or fails. Without one, there is no cost: the signpost is met where the
/// engine opens the store, and a process that has the store open notices that its file was replaced.
///
/// For a program with a group of its own keychaind decides, not the file: another program of the user could put a keychain of its own in the place of
/// the signpost, and read there what this program stores.
package final class UserKeychain: Sendable {
    /// A keychain with everything that both implementations offer.
    package typealias Implementation = Keychain & KeychainSessionProviding & KeychainAuthenticating & ObservableKeychain
        & SurveyableKeychain

    private struct Kept {
        let storeID: StoreID
        let keychain: DaemonKeychain
    }

    /// The engine of this process, for what keychaind does not offer.
    package let local: LocalKeychain
    private let connector: DaemonClient.Connector
    private let socketPath: String
    private let group: ProgramGroup
    /// Whether `kept` is in use, which each call reads.
    private let isKept = Atomic(false)
    private let kept = Mutex<Kept?>(nil)

    /// - Parameters:
    ///   - local: The engine of this process.
    ///   - connector: Connects to keychaind; only tests have another one.
    ///   - socketPath: The socket of keychaind, for agents; only tests have another one.
    ///   - group: The group of the program; only tests have another value.
    package init(
        _ local: LocalKeychain,
        connector: @escaping DaemonClient.Connector = DaemonClient.connector(toSocketAt: DaemonClient.standardSocketPath),
        socketPath: String = DaemonClient.standardSocketPath,
        group: ProgramGroup = .ofThisProcess
    ) {
        self.local = local
        self.connector = connector
        self.socketPath = socketPath
        self.group = group
    }

    /// Whether the program runs with the group of its file.
    ///
    /// keychaind decides whether the group identifies the program.
    package enum ProgramGroup: Sendable {
        /// That of the process which has started it.
        case none
        /// A group of its own, which root has not registered.
        case unregistered
        /// A group that root has registered: the program uses no keychain without keychaind.
        case registered

        package static var ofThisProcess: ProgramGroup {
            let group = CurrentProcess.effectiveGroupID
            guard group != CurrentProcess.realGroupID else { return .none }
            // A database that cannot be read makes no program less careful.
            guard let entry = try? UserDatabase.group(group) else { return .registered }
            do throws(Errno) {
                _ = try FileStatus(of: "\(DaemonClient.registrationDirectory)/\(entry.name).entitlements")
                return .registered
            } catch {
                // A directory that only keychaind can read makes no program less careful either.
                return error == .notFound ? .unregistered : .registered
            }
        }
    }

    /// Runs `body` on the keychain that the file at the store's path names.
    ///
    /// A call that one of them refuses, because the other one has the keychain by now, is performed by that one. It changed nothing before.
    private func perform<Result>(
        _ body: (any Implementation) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        var refusal: (storeID: StoreID, failure: KeychainFailure)?
        // A second round follows a release, and a third one another adoption.
        for _ in 0..<3 {
            if let kept = try keptBeforeOpening() {
                do throws(KeychainFailure) {
                    return try body(kept.keychain)
                } catch {
                    // Also if keychaind is not there: it may have been removed after it released the keychain.
                    guard error.cause == .notKept || error.cause == .missing && group != .registered else { throw error }
                    refusal = (kept.storeID, error)
                    isKept.store(false, ordering: .releasing)
                }
            }
            do throws(KeychainFailure) {
                return try body(local)
            } catch {
                // The engine refuses biometry before it opens the store, where it would meet the signpost.
                let failure = error.refusal == .biometryNotAvailable ? local.signpostFailure() ?? error : error
                guard case .keptByDaemon(let storeID) = failure.cause else { throw error }
                if let refusal, refusal.storeID == storeID { throw refusal.failure }
                // After a power cut the former file could be there again, and would lack what keychaind acknowledges from now on.
                try? FileSystem.flush(FileSystem.parent(of: local.configuration().storePath))
                keep(storeID)
            }
        }
        throw refusal?.failure ?? KeychainFailure(.notAvailable, "the keychain is being handed over again and again", cause: .busy)
    }

    /// Returns the keychain that keychaind keeps, as far as it is known without opening a file.
    private func keptBeforeOpening() throws(KeychainFailure) -> Kept? {
        if isKept.load(ordering: .acquiring) { return kept.withLock(\.self) }
        guard group != .none, let storeID = try askedStoreID() else { return nil }
        // The engine has not met the signpost, and would continue with the file that it has open after a release.
        local.close()
        return keep(storeID)
    }

    /// Asks keychaind which keychain of the user it is in charge of; nil if it is in charge of none.
    private func askedStoreID() throws(KeychainFailure) -> StoreID? {
        do throws(KeychainFailure) {
            let client = DaemonClient(entitlements: local.entitlements, connector: connector)
            switch try DaemonHandover(client).keptKeychain() {
            case (.inUse, let storeID), (.releasing, let storeID): return storeID
            case (.nothing, _), (.incomplete, _), (.prepared, _): return nil
            }
        } catch {
            guard error.cause == .missing else { throw error }
            guard group == .registered else { return nil }
            throw KeychainFailure(
                .notAvailable, "\(error.reason); this program is registered with keychaind, and uses no keychain without it",
                cause: .missing)
        }
    }

    @discardableResult
    private func keep(_ storeID: StoreID) -> Kept {
        kept.withLock { kept in
            defer { isKept.store(true, ordering: .releasing) }
            if let kept, kept.storeID == storeID { return kept }
            let made = Kept(
                storeID: storeID,
                keychain: DaemonKeychain(
                    DaemonClient(
                        entitlements: local.entitlements, storeID: storeID,
                        launcher: ProcessAgentLauncher(for: local, socketPath: socketPath),
                        connector: connector)))
            kept = made
            return made
        }
    }

    /// Returns the keychain that keychaind keeps; nil if there is no signpost.
    ///
    /// Throws the errors of opening the keychain, but not `.itemNotFound`.
    package func keptKeychain() throws(KeychainFailure) -> DaemonKeychain? {
        if group != .none, let storeID = try askedStoreID() { return keep(storeID).keychain }
        do throws(KeychainFailure) {
            try local.perform(creating: false) { _ in }
        } catch {
            if case .keptByDaemon(let storeID) = error.cause { return keep(storeID).keychain }
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

extension UserKeychain: SurveyableKeychain {
    package func survey() throws(KeychainFailure) -> ItemSurvey {
        try perform { keychain throws(KeychainFailure) in try keychain.survey() }
    }

    package func places(ofAccount account: String, services: [String]?) throws(KeychainFailure) -> [ItemPlace] {
        try perform { keychain throws(KeychainFailure) in try keychain.places(ofAccount: account, services: services) }
    }
}

extension UserKeychain: KeychainAuthenticating {
    package func biometryStatus() throws(KeychainFailure) -> BiometryStatus {
        try perform { keychain throws(KeychainFailure) in try keychain.biometryStatus() }
    }

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
