// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainSystem
internal import Logging

/// The keychain engine of one process, over a store in a file or in memory.
///
/// The store is opened by the first call and created by the first write.
package final class LocalKeychain: TransactionalKeychain {
    let backend: any KeychainBackend
    package let entitlements: Entitlements
    let promptSettings: PromptSettings
    /// Nil if nothing verifies fingers.
    let biometry: (any BiometryVerifier)?
    let prompts: PromptQueue<PromptKey>
    private let opened: SharedOpenKeychain
    /// Whether the open keychain has the entitlements of another program.
    private let sharesOpenKeychain: Bool
    let changes = ChangeNotifier()

    package init(backend: any KeychainBackend) {
        self.backend = backend
        entitlements = backend.entitlements
        promptSettings = backend.promptSettings
        biometry = nil
        prompts = PromptQueue(promptLock: promptSettings.promptLock)
        opened = SharedOpenKeychain(backend)
        sharesOpenKeychain = false
    }

    private init(
        sharing other: LocalKeychain, entitlements: Entitlements, promptSettings: PromptSettings, biometry: (any BiometryVerifier)?
    ) {
        backend = other.backend
        self.entitlements = entitlements
        self.promptSettings = promptSettings
        self.biometry = biometry
        prompts = other.prompts
        opened = other.opened
        sharesOpenKeychain = true
    }

    /// Returns the same keychain for a program with other entitlements, with one open store for both.
    ///
    /// `prompter` asks the person, with `requester` as the name of the program; nil to ask as this keychain does. `biometry` verifies the
    /// fingers of the person.
    package func with(
        entitlements: Entitlements, prompter: (any PresencePrompter)? = nil, requester: String? = nil,
        biometry: (any BiometryVerifier)? = nil
    ) -> LocalKeychain {
        var entitlements = entitlements
        entitlements.offersBiometry = biometry != nil
        var settings = promptSettings
        settings.prompter = prompter ?? settings.prompter
        settings.requester = requester ?? settings.requester
        return LocalKeychain(sharing: self, entitlements: entitlements, promptSettings: settings, biometry: biometry)
    }

    /// Uses the store in the file that `configuration` names.
    package convenience init(configuration: KeychainConfiguration, entitlements: Entitlements) {
        self.init(backend: FileKeychainBackend(configuration: configuration, entitlements: entitlements))
    }

    /// Returns the open keychain as the program may use it.
    private func items(in opened: OpenKeychain) -> SealedKeychain {
        sharesOpenKeychain ? opened.keychain.with(entitlements: entitlements) : opened.keychain
    }

    // MARK: Items

    package func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        // Checked first, so that a refused request does not create a store.
        let control = try entitlements.validateAdd(request).control
        let needsPasscode =
            control.accessibility == .whenPasscodeSetThisDeviceOnly || control.constraint?.needsPresence == true
            || control.constraint?.isSatisfiable == false
        var request = request
        guard needsPasscode else {
            try prepareSealing(control.constraint, &request.authentication)
            return try add(request, creating: true)
        }
        do throws(KeychainFailure) {
            try prepareSealing(control.constraint, &request.authentication)
            return try add(request, creating: false)
        } catch {
            guard error.status == .itemNotFound else { throw error }
            throw KeychainFailure(.authFailed, "no passcode is set: there is no keychain yet", refusal: .passcodeNotSet)
        }
    }

    private func add(_ request: AddRequest, creating: Bool) throws(KeychainFailure) -> KeychainItem {
        try perform(creating: creating, .add, request) { opened, request throws(KeychainFailure) in
            try items(in: opened).add(request)
        }
    }

    package func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try requireAccess(.read, to: request.query)
        return try perform(creating: false, .read, request) { opened, request throws(KeychainFailure) in
            try items(in: opened).copyMatching(request)
        }
    }

    package func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try requireAccess(.write, to: request.query)
        if let newGroup = request.changes.text(.accessGroup) { try entitlements.requireAccess(.write, to: newGroup) }
        var request = request
        try prepareSealing(request.accessControl?.constraint, &request.authentication)
        try perform(creating: false, .change, request) { opened, request throws(KeychainFailure) in
            try items(in: opened).update(request)
        }
    }

    package func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try requireAccess(.write, to: request.query)
        try perform(creating: false, .delete, request) { opened, request throws(KeychainFailure) in
            try items(in: opened).delete(request)
        }
    }

    /// Creates the store if there is none, because a transaction is for writes.
    package func transaction(_ body: (any Keychain) -> Bool) throws(KeychainFailure) -> Bool {
        try perform(creating: true) { opened throws(KeychainFailure) in try items(in: opened).transaction(body) }
    }

    /// Refuses an access group that the program is not entitled to, even if there is no store yet.
    private func requireAccess(_ kind: Entitlements.Access, to query: ItemQuery) throws(KeychainFailure) {
        // An open keychain checks the group itself.
        guard opened.current.withLock({ $0 == nil }) else { return }
        _ = try entitlements.groups(forSearchNaming: query.attributes.text(.accessGroup), access: kind)
    }

    // MARK: Opening and retrying

    /// The open keychain; opens it if necessary.
    ///
    /// Throws as `KeychainBackend.open` does.
    func current(creating: Bool) throws(KeychainFailure) -> OpenKeychain {
        if let current = opened.current.withLock({ $0 }) { return current }
        // Opening reads files and may create a store, so it runs outside the lock. If two threads open at once, one result is kept.
        let fresh = try backend.open(creating: creating)
        return opened.current.withLock { opened in
            if let winner = opened { return winner }
            opened = fresh
            return fresh
        }
    }

    /// Runs `body` on the open keychain; reopens the keychain and runs `body` again if the store or its keybag was replaced.
    ///
    /// Failures get their context here: see `KeychainBackend.addingContext(to:)`.
    ///
    /// These are the retry loops of the engine, the system, and the TPM, from the outermost to the innermost:
    ///
    /// | Loop | Repeats when | Ends because |
    /// |---|---|---|
    /// | `perform(creating:_:_:_:)` | an item needs authentication | 20 repetitions, Apple's limit; three passwords per call |
    /// | `askForPasscode` | the passcode is wrong | three attempts |
    /// | `TerminalPrompter.enter`, `PinentryDialog.enterTwice` | the two entries of a new password differ | three attempts |
    /// | `perform(creating:_:)`, this one | the store or the keybag was replaced | each round needs another change, and there are 5 s in all |
    /// | `KernelKeyHolder.load`, `KernelKeyring.removeAll` | another process changed the keyring meanwhile | 8 rounds |
    /// | `KernelKeyring.serials`, `.withContent` | the keyring or the key grew while it was read | 8 rounds |
    /// | `KernelKeyring.hold` | the user's quota is used up until the kernel frees removed keys | 250 rounds, 2 s |
    /// | `rewrapRows` | there are more rows under old class keys | each batch ends at a higher row number |
    /// | `KeyFile.renameUnusable` | a name is taken | 99 names |
    /// | `work` in `CTPMShims/worker.c` | the TPM is busy | the timeout of the call expires |
    ///
    /// Opening does not loop: if the keybag changes while it is opened, opening throws and this loop repeats it. The loops of the
    /// store are listed at `SQLiteItemStore`. Outside the engine, Valet's `NamespaceKeychain.setObject` repeats update and add.
    package func perform<Result>(
        creating: Bool, _ body: (OpenKeychain) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        var deadlineNanoseconds: UInt64?
        var pauseNanoseconds = Self.shortestRetryPauseNanoseconds
        while true {
            var used: OpenKeychain?
            do throws(KeychainFailure) {
                let current = try current(creating: creating)
                used = current
                return try body(current)
            } catch {
                // Ordinary results, returned without the cost of reading the clock.
                if error.status == .itemNotFound || error.status == .duplicateItem { throw error }
                let now = SystemContinuousTime().nowNanoseconds()
                guard now < deadlineNanoseconds ?? .max, canRetry(error, used, isFirst: deadlineNanoseconds == nil) else {
                    throw backend.addingContext(to: error)
                }
                deadlineNanoseconds = deadlineNanoseconds ?? now + Self.retryLimitNanoseconds
                if let used {
                    close(used)
                } else {
                    // It takes another process some time to complete what prevents the opening.
                    MonotonicClock.sleep(nanoseconds: pauseNanoseconds)
                    pauseNanoseconds = min(2 * pauseNanoseconds, Self.longestRetryPauseNanoseconds)
                }
            }
        }
    }

    /// The time for all retries of one call, from the first failure on.
    private static let retryLimitNanoseconds: UInt64 = 5_000_000_000
    /// The pauses between attempts to open the keychain, each twice as long as the one before.
    private static let shortestRetryPauseNanoseconds: UInt64 = 250_000
    private static let longestRetryPauseNanoseconds: UInt64 = 20_000_000

    /// Whether the same call may have another result once the keychain is reopened; `used` is nil if opening failed.
    private func canRetry(_ failure: KeychainFailure, _ used: OpenKeychain?, isFirst: Bool) -> Bool {
        guard let used else { return failure.requiresReopening }
        if failure.requiresReopening {
            // After the first round there must be something new to open: another thread reopened it, or the keybag changed.
            if isFirst || opened.current.withLock({ $0 !== used }) { return true }
        } else if !Self.mayDependOnKeybag(failure.status) {
            return false
        }
        return (try? used.isOutdated()) ?? false
    }

    /// Whether another keybag may change the result: another process may have set, changed, or removed the passcode.
    private static func mayDependOnKeybag(_ status: KeychainStatus) -> Bool {
        status == .interactionNotAllowed || status == .authFailed || status == .decode
    }

    /// Runs `body` as `perform(creating:_:)` does, after checking that the open keybag is the store's newest.
    func performOnCurrentKeybag<Result>(
        _ body: (OpenKeychain) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try perform(creating: false) { opened throws(KeychainFailure) in
            if try opened.isOutdated() { throw SealedKeychain.keybagChanged }
            return try body(opened)
        }
    }

    /// Adds context to the failures of an operation that does not use the open keychain.
    func addingContext<Result>(_ body: () throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        do throws(KeychainFailure) { return try body() } catch { throw backend.addingContext(to: error) }
    }

    /// Returns the identifier of the store.
    ///
    /// Throws `.itemNotFound` if there is none, and the errors of opening it.
    package func storeID() throws(KeychainFailure) -> StoreID {
        try perform(creating: false) { opened in opened.keybag.storeID }
    }

    /// Closes the open keychain, if any; the next call opens it again.
    package func close() {
        if let current = opened.current.withLock({ $0 }) { close(current) }
    }

    /// Returns memory that only makes the next call faster, if there was no call since this was called last; the lock state stays.
    ///
    /// Returns whether it did.
    package func releaseMemoryIfUnused() -> Bool {
        opened.current.withLock { $0 }?.releaseMemoryIfUnused() ?? false
    }

    /// Closes `outdated`, but not a keychain that another thread has opened since.
    func close(_ outdated: OpenKeychain) {
        opened.current.withLock { opened in
            if opened === outdated { opened = nil }
        }
        backend.close(outdated)
    }

    /// The number of calls that are asking a person, waiting to ask, or waiting for the answer to another call's question.
    package var promptParticipantCount: Int { prompts.participantCount }
}

/// An open keychain, closed when the last program that uses it ends.
private final class SharedOpenKeychain: Sendable {
    let current = LockedValue<OpenKeychain?>(nil)
    private let backend: any KeychainBackend

    init(_ backend: any KeychainBackend) {
        self.backend = backend
    }

    deinit {
        if let keychain = current.withLock({ $0 }) { backend.close(keychain) }
    }
}

/// Warnings about what no call reports: never a secret, never the value of an attribute.
enum EngineLog {
    private static let logger = Logger(label: "keychain")

    static func warn(_ message: String) {
        logger.warning("\(message)")
    }
}

/// The keychain that the calls of this process use.
package enum DefaultKeychain {
    /// The keychain bound to the task; without one, the keychain of the process's user.
    ///
    /// Throws `.notAvailable` if the environment names no location, or in a process under test outside every keychain scope, and
    /// `.missingEntitlement` if the program's entitlements cannot be read.
    package static func current() throws(KeychainFailure) -> any Keychain {
        if let bound = try CurrentKeychain.boundKeychain() { return bound }
        return try own.value { () throws(KeychainFailure) in
            UserKeychain(LocalKeychain(configuration: try .fromEnvironment(), entitlements: try entitlements()))
        }
    }

    /// Returns the engine of this process behind `current`, for what keychaind does not offer; nil if there is none.
    ///
    /// Where keychaind keeps the keychain, each of its calls fails with the cause `.keptByDaemon`. Throws as `current` does.
    package static func engine() throws(KeychainFailure) -> LocalKeychain? {
        let keychain = try current()
        return keychain as? LocalKeychain ?? (keychain as? UserKeychain)?.local
    }

    /// Reads the entitlements of this process.
    ///
    /// The first failure is logged: every call fails with a status that names neither the file nor what is wrong with it.
    private static func entitlements() throws(KeychainFailure) -> Entitlements {
        do throws(KeychainFailure) {
            return try CallerEntitlements.ofThisProcess().resolve()
        } catch {
            entitlementsWarning.value { EngineLog.warn("the keychain cannot be used: \(error.reason)") }
            throw error
        }
    }

    private static let entitlementsWarning = FirstSuccess<Void>()

    // Made once: the environment and the program do not change while the process runs.
    private static let own = FirstSuccess<UserKeychain>()
}
