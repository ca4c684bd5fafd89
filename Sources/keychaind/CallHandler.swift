// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainIPC
internal import KeychainPeers
internal import KeychainSystem
internal import Synchronization

/// Performs the calls of one connection on the keychain of its user.
final class CallHandler {
    /// The most authentication contexts of one connection.
    private static let largestContextCount = 64
    /// The most bytes of the texts and the password of an authentication context.
    private static let largestContextByteCount = 4_096

    private let program: ProgramKeychain
    private let identity: PeerIdentity
    private let contexts: ContextTable
    private let process: Int32
    private let handovers: Handovers?
    private let logins: LoginCalls?
    private var handover: KeychainHandover?
    /// Whether a keychain is being handed over on this connection.
    var isHandingOver: Bool { handover != nil }
    /// Keeps the contexts that were used on this connection.
    private var usedContexts: [Identifier128: CounterpartContext] = [:]

    /// - Parameters:
    ///   - identity: The identity of the program.
    ///   - contexts: The contexts of the user.
    ///   - process: The program's process, whose contexts no other process can use.
    ///   - handovers: What hands the keychain of the user over; nil if keychaind does not.
    ///   - logins: What performs the calls of a login; nil if keychaind does not.
    ///   - program: The keychain as the program may use it.
    init(
        identity: PeerIdentity, contexts: ContextTable, process: Int32, handovers: Handovers?, logins: LoginCalls?,
        _ program: ProgramKeychain
    ) {
        self.program = program
        self.identity = identity
        self.contexts = contexts
        self.process = process
        self.handovers = handovers
        self.logins = logins
    }

    deinit {
        let tokens = Array(usedContexts.keys)
        usedContexts = [:]
        contexts.removeUnused(tokens, of: process)
    }

    /// Performs a call, and returns its result or its failure.
    func response(to request: Request) -> Response {
        var counterpart: CounterpartContext?
        let reply: Reply
        do throws(KeychainFailure) {
            if let reference = request.context { counterpart = try self.counterpart(reference) }
            reply = try perform(request.call, in: counterpart?.context)
        } catch {
            reply = .failure(error)
        }
        return Response(reply, password: counterpart?.password)
    }

    /// Calls `send` with each reply to the request to read the rows of a keychain that is handed over.
    func sendRows(_ send: (Response) throws(MessageChannel.Failure) -> Void) throws(MessageChannel.Failure) {
        var sendingFailure: MessageChannel.Failure?
        do throws(KeychainFailure) {
            guard let handover else { throw KeychainHandover.outOfOrder }
            try handover.forEachBatch { rows, isLast throws(KeychainFailure) in
                do throws(MessageChannel.Failure) {
                    try send(Response(.rows(rows, isLast: isLast)))
                } catch {
                    sendingFailure = error
                    throw KeychainFailure(.notAvailable, "the program has ended")
                }
            }
        } catch {
            if let sendingFailure { throw sendingFailure }
            try send(Response(.failure(error)))
        }
    }

    private func performHandover(_ call: Call) throws(KeychainFailure) -> Reply? {
        switch call {
        case .keptKeychain:
            let (kept, storeID) = try required(handovers).keptKeychain()
            return .keptKeychain(kept, storeID: storeID)
        case .beginAdoption(let keys):
            handover = nil
            handover = try required(handovers).adopt(keys)
        case .insertRows(let rows): try required(handover).insert(rows)
        case .prepareAdoption: try required(handover).prepareAdoption()
        case .finishAdoption:
            try required(handover).finishAdoption()
            handover = nil
        case .abandonAdoption:
            try required(handover).abandonAdoption()
            handover = nil
        case .beginRelease(let user):
            handover = nil
            let begun = try required(handovers).release(user)
            // If they cannot be read, the handover ends here.
            let keys = try begun.keys()
            handover = begun
            return .keychainKeys(keys)
        case .prepareRelease: try required(handover).prepareRelease()
        case .finishRelease:
            try required(handover).finishRelease()
            handover = nil
        case .setReleasedAside:
            let path = try required(handover).setReleasedAside()
            handover = nil
            return .path(path)
        default: return nil
        }
        return .done
    }

    private func required<Value>(_ value: Value?) throws(KeychainFailure) -> Value {
        guard let value else { throw KeychainHandover.outOfOrder }
        return value
    }

    private func perform(_ call: Call, in context: AuthenticationContext?) throws(KeychainFailure) -> Reply {
        try requireMayPerform(call)
        if let reply = try performHandover(call) { return reply }
        if try logins?.perform(call) == true { return .done }
        if let reply = try program.perform(call) { return reply }
        let keychain = try program.keychain()
        switch call {
        case .add(var add):
            add.authentication.context = context
            let item = try keychain.add(add)
            // The program has the secret.
            return .items([
                KeychainItem(reference: item.reference, attributes: item.attributes, accessControl: item.accessControl, secret: nil)
            ])
        case .copyMatching(var match):
            match.authentication.context = context
            return .items(try keychain.copyMatching(match))
        case .update(var update):
            update.authentication.context = context
            try keychain.update(update)
        case .delete(var delete):
            delete.authentication.context = context
            try keychain.delete(delete)
        case .sessionStatus: return .sessionStatus(try keychain.sessionStatus())
        case .unlock(let secret, let autoLock): try keychain.unlock(try Passcode(normalized: try secret.copy()), autoLock: autoLock)
        case .lock(let extent): try keychain.lock(extent)
        case .setAutoLock(let autoLock): try keychain.setAutoLock(autoLock)
        case .setPasscode(let secret, let autoLock):
            try keychain.setPasscode(try Passcode(normalized: try secret.copy()), autoLock: autoLock)
        case .changePasscode(let current, let new, let rotatesKeys, let autoLock):
            try keychain.changePasscode(
                from: try Passcode(normalized: try current.copy()), to: try Passcode(normalized: try new.copy()), rotatingKeys: rotatesKeys,
                autoLock: autoLock)
        case .passcodeRemoval(let secret):
            return .passcodeRemoval(try keychain.passcodeRemoval(try Passcode(normalized: try secret.copy())))
        case .removePasscode(let secret, let removal):
            try keychain.removePasscode(try Passcode(normalized: try secret.copy()), deleting: removal)
        case .requireCanAuthenticate(let constraint): try keychain.requireCanAuthenticate(constraint, in: context)
        case .authenticate(let constraint, let accessibility, var authentication):
            authentication.context = context
            try keychain.authenticate(constraint, of: accessibility, authentication)
        case .biometryStatus: return .biometryStatus(try keychain.biometryStatus())
        case .forgetContext(let token):
            usedContexts[token] = nil
            contexts.invalidate(token, of: process)
        // The connection does that itself, or `performHandover`, `logins`, or `program`.
        case .observeChanges, .readRows, .keptKeychain, .beginAdoption, .insertRows, .prepareAdoption, .finishAdoption, .beginRelease,
            .prepareRelease, .finishRelease, .setReleasedAside,
            .abandonAdoption, .unlockAtLogin, .changePasscodeAtLogin, .watchSessions, .lockWithSession, .agentProgram, .showPrompts,
            .answer, .serveFingerprints, .fingerprintAnswer, .requestAccess, .grants, .grant, .revoke, .survey, .places,
            .identify:
            throw KeychainFailure(.internal, "this is no call of a keychain")
        }
        return .done
    }

    /// Throws `.missingEntitlement` for calls with which any program of the user could lock the user out, or delete items of other programs.
    ///
    /// Who changes the passcode knows the present one, as with passwd(1). A program in a sandbox gets nothing with it, and so changes nothing.
    private func requireMayPerform(_ call: Call) throws(KeychainFailure) {
        switch (call, identity) {
        case (_, .programGroup): return
        case (.changePasscode, .sandboxed):
            throw KeychainFailure(.missingEntitlement, "a program in a sandbox may not change the passcode of a user's keychain")
        case (.setPasscode, _), (.passcodeRemoval, _), (.removePasscode, _):
            throw KeychainFailure(
                .missingEntitlement,
                "only a program with a group of its own, which root has registered, may set or remove the passcode of a user's keychain")
        default: return
        }
    }

    private func counterpart(_ reference: ContextReference) throws(KeychainFailure) -> CounterpartContext {
        guard usedContexts[reference.token] != nil || usedContexts.count < Self.largestContextCount else {
            throw KeychainFailure(.allocate, "this program has more than \(Self.largestContextCount) authentication contexts")
        }
        guard reference.byteCount <= Self.largestContextByteCount else {
            throw KeychainFailure(
                .parameter, "the password and the texts of an authentication context have more than \(Self.largestContextByteCount) bytes")
        }
        let counterpart = contexts.counterpart(of: reference.token, of: process)
        usedContexts[reference.token] = counterpart
        counterpart.update(with: reference)
        return counterpart
    }
}

extension ContextReference {
    fileprivate var byteCount: Int {
        var count = (settings.reason?.utf8.count ?? 0) + (settings.cancelTitle?.utf8.count ?? 0)
        if case .given(let password) = password { count += password.secret.byteCount }
        return count
    }
}

/// The handovers that a program may begin.
struct Handovers {
    let keptKeychain: () throws(KeychainFailure) -> (KeptKeychain, storeID: StoreID?)
    let adopt: (KeychainKeys) throws(KeychainFailure) -> KeychainHandover
    let release: (_ user: UInt32) throws(KeychainFailure) -> KeychainHandover
}

/// keychaind's counterpart of a program's authentication context, with the keys that authentication has released.
final class CounterpartContext: Sendable {
    let context = AuthenticationContext()
    /// The password that the program has given last.
    private let given = Mutex<ApplicationPassword?>(nil)

    /// Takes over the program's settings and its password.
    func update(with reference: ContextReference) {
        context.settings = reference.settings
        switch reference.password {
        case .kept: break
        case .none: setPassword(nil)
        case .given(let secret):
            // The same object keeps the keys that were derived from it.
            if let present = context.applicationPassword, Self.isEqual(present, secret) { return }
            // Copying fails only without memory. Then the password is missing, and the call says so.
            setPassword(try? ApplicationPassword(secret.copy()))
        }
    }

    private func setPassword(_ password: ApplicationPassword?) {
        given.withLock { $0 = password }
        context.setApplicationPassword(password)
    }

    /// The password of the context, for the program.
    var password: Response.ContextPassword {
        guard let present = context.applicationPassword else { return .none }
        return given.withLock { $0 === present } ? .given : .entered
    }

    private static func isEqual(_ password: ApplicationPassword, _ secret: SharedSecretBytes) -> Bool {
        // Both are read within the closures. The program knows the secret, so it learns nothing from the time that this takes.
        unsafe password.bytes.withBytes { left in unsafe secret.secret.withBytes { right in unsafe left.elementsEqual(right) } }
    }
}

/// The authentication contexts of a user's programs, which last as long as a connection that has used them.
final class ContextTable: Sendable {
    private struct Key: Hashable {
        let process: Int32
        let token: Identifier128
    }

    private struct Entry {
        weak var counterpart: CounterpartContext?
    }

    private let entries = Mutex<[Key: Entry]>([:])

    func counterpart(of token: Identifier128, of process: Int32) -> CounterpartContext {
        let key = Key(process: process, token: token)
        return entries.withLock { entries in
            if let counterpart = entries[key]?.counterpart { return counterpart }
            let made = CounterpartContext()
            entries[key] = Entry(counterpart: made)
            return made
        }
    }

    /// Removes the entries of contexts that no connection uses any more.
    func removeUnused(_ tokens: [Identifier128], of process: Int32) {
        entries.withLock { entries in
            for key in tokens.map({ Key(process: process, token: $0) }) where entries[key]?.counterpart == nil { entries[key] = nil }
        }
    }

    func invalidate(_ token: Identifier128, of process: Int32) {
        entries.withLock { $0.removeValue(forKey: Key(process: process, token: token)) }?.counterpart?.context.invalidate()
    }
}
