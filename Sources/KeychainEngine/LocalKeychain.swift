// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainStore
internal import KeychainSystem
internal import Logging
internal import Synchronization

/// The keychain of this process's user, in a file: opened at the first call, made at the first write.
package final class LocalKeychain: Keychain {
    package let configuration: KeychainConfiguration
    package let entitlements: Entitlements
    let access: KeychainAccess<SQLiteItemStore>

    package init(configuration: KeychainConfiguration, entitlements: Entitlements) {
        self.configuration = configuration
        self.entitlements = entitlements
        access = KeychainAccess(
            passcodePolicy: { () throws(KeychainFailure) in try configuration.passcodePolicy() },
            prompting: configuration.prompting(requester: Self.pathOfThisProgram),
            opening: { creating throws(KeychainFailure) in
                try FileKeychainBackend(configuration: configuration, entitlements: entitlements).run(creating: creating)
            },
            closing: { $0.store.close() })
    }

    package func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        // A call that would be refused anyway makes no store.
        let control = try entitlements.admit(request).control
        let needsPasscode = control.accessibility == .whenPasscodeSetThisDeviceOnly || control.constraint?.needsPresence == true
        guard needsPasscode else { return try add(request, creating: true) }
        do throws(KeychainFailure) {
            return try add(request, creating: false)
        } catch {
            guard error.status == .itemNotFound else { throw error }
            throw KeychainFailure(.authFailed, "no passcode is set: there is no keychain yet", refusal: .passcodeNotSet)
        }
    }

    private func add(_ request: AddRequest, creating: Bool) throws(KeychainFailure) -> KeychainItem {
        try perform(creating: creating, .add, request) { keychain, request throws(KeychainFailure) in
            try keychain.add(request)
        }
    }

    package func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try requireAccess(.read, to: request.query)
        return try perform(creating: false, .read, request) { keychain, request throws(KeychainFailure) in
            try keychain.copyMatching(request)
        }
    }

    package func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try requireAccess(.write, to: request.query)
        if let newGroup = request.changes.text(.accessGroup) { try entitlements.require(newGroup, access: .write) }
        try perform(creating: false, .change, request) { keychain, request throws(KeychainFailure) in
            try keychain.update(request)
        }
    }

    package func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try requireAccess(.write, to: request.query)
        try perform(creating: false, .delete, request) { keychain, request throws(KeychainFailure) in
            try keychain.delete(request)
        }
    }

    /// A group that the program may not use is refused also where no store exists yet.
    private func requireAccess(_ kind: Entitlements.Access, to query: ItemQuery) throws(KeychainFailure) {
        guard !access.isOpen else { return }
        _ = try entitlements.groups(forSearchNaming: query.attributes.text(.accessGroup), access: kind)
    }

    private func perform<Request: AuthenticatedRequest, Result>(
        creating: Bool, _ action: AuthenticatedAction, _ request: Request,
        _ body: (SealedKeychain, Request) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try naming { () throws(KeychainFailure) in
            try access.perform(creating: creating, action, request) { opened, request throws(KeychainFailure) in
                try body(opened.keychain, request)
            }
        }
    }

    /// The open keychain.
    ///
    /// Throws `.itemNotFound` where there is none and none may be made: then nothing was ever stored.
    func open(creating: Bool) throws(KeychainFailure) -> OpenKeychain<SQLiteItemStore> {
        try naming { () throws(KeychainFailure) in try access.current(creating: creating) }
    }

    /// SQLite and the keybag do not know which file it is that they cannot use; whoever reads the failure wants to.
    ///
    /// `otherPlace`: what is about that is not about the keychain.
    func naming<Result>(
        unlessAbout otherPlace: String? = nil, _ body: () throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            // The status decides first: "not found" is an everyday answer and must not cost a search through text.
            switch error.status {
            case .notAvailable, .readOnly, .inputOutput:
                let ownPlaces = [FileSystem.parent(of: configuration.storePath), configuration.keyDirectory, configuration.policyPath]
                let places = ownPlaces + (otherPlace.map { [$0] } ?? [])
                throw places.contains(where: error.reason.contains) ? error : error.located(at: configuration.storePath, .store)
            default:
                throw error
            }
        }
    }
}

/// The way to an open keychain: opens it at the first call, and anew when the store or its keybag changed beneath.
package final class KeychainAccess<Store: ItemStore>: Sendable {
    package typealias Opened = OpenKeychain<Store>

    private let opening: @Sendable (_ creating: Bool) throws(KeychainFailure) -> Opened
    private let closing: @Sendable (Opened) -> Void
    private let opened = Mutex<Opened?>(nil)
    let passcodePolicy: @Sendable () throws(KeychainFailure) -> PasscodePolicy
    let prompting: Prompting
    package let prompts = PromptQueue<PromptKey>()

    /// Opens nothing yet.
    ///
    /// `opening` throws `.itemNotFound` where there is no keychain and none may be made: then nothing was ever stored.
    package init(
        passcodePolicy: @escaping @Sendable () throws(KeychainFailure) -> PasscodePolicy, prompting: Prompting,
        opening: @escaping @Sendable (_ creating: Bool) throws(KeychainFailure) -> Opened,
        closing: @escaping @Sendable (Opened) -> Void
    ) {
        self.passcodePolicy = passcodePolicy
        self.prompting = prompting
        self.opening = opening
        self.closing = closing
    }

    deinit {
        opened.withLock { opened in
            if let opened { closing(opened) }
        }
    }

    package var isOpen: Bool { opened.withLock { $0 != nil } }

    /// The open keychain.
    package func current(creating: Bool) throws(KeychainFailure) -> Opened {
        if let current = opened.withLock({ $0 }) { return current }
        // Opening reads files and may make a store, so it runs outside the lock; of two at once, one result is kept.
        let fresh = try opening(creating)
        return opened.withLock { opened in
            if let winner = opened { return winner }
            opened = fresh
            return fresh
        }
    }

    /// Runs `body` on the open keychain, and again when the store or its keybag is another one by now.
    ///
    /// Again and again while other processes change the keybag, though not for ever.
    package func perform<Result>(
        creating: Bool, _ body: (Opened) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        var deadlineNanoseconds: UInt64?
        while true {
            let opened = try current(creating: creating)
            do throws(KeychainFailure) {
                return try body(opened)
            } catch {
                let now = SystemContinuousTime().nowNanoseconds()
                guard now < deadlineNanoseconds ?? .max, canRetry(error, opened, isFirst: deadlineNanoseconds == nil) else {
                    throw error
                }
                deadlineNanoseconds = deadlineNanoseconds ?? now + Self.patienceNanoseconds
                close(opened)
            }
        }
    }

    /// Longer than any number of changes by others that do not go on for ever.
    private static var patienceNanoseconds: UInt64 { 5_000_000_000 }

    /// Whether the same call may be answered in another way once the keychain is opened anew.
    private func canRetry(_ failure: KeychainFailure, _ opened: Opened, isFirst: Bool) -> Bool {
        if failure.requiresReopening {
            // After the first time there must be something new to open: another thread has closed this one, or the keybag changed.
            if isFirst || self.opened.withLock({ $0?.keybag !== opened.keybag }) { return true }
        } else if !Self.mayDependOnKeybag(failure.status) {
            return false
        }
        return (try? opened.isOutdated()) ?? false
    }

    /// Answers that another keybag may change: a passcode may have been set, changed or removed by another process.
    private static func mayDependOnKeybag(_ status: KeychainStatus) -> Bool {
        status == .interactionNotAllowed || status == .authFailed || status == .decode
    }

    /// Lets go of what is open, if anything is; the next call opens anew.
    func closeCurrent() {
        if let current = opened.withLock({ $0 }) { close(current) }
    }

    /// Lets go of what failed or is outdated, and of nothing that another thread has opened in its place since.
    func close(_ outdated: Opened) {
        opened.withLock { opened in
            if opened?.keybag === outdated.keybag { opened = nil }
        }
        closing(outdated)
    }
}

/// What the engine has to say to whoever runs the program: never a secret, never an attribute's value.
enum EngineLog {
    private static let logger = Logger(label: "keychain")

    static func warn(_ message: String) {
        logger.warning("\(message)")
    }
}
