// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A call of a keychain that a program sends to keychaind.
///
/// The requests of item operations have no authentication context here: `ContextReference` stands for it.
package enum Call: Sendable {
    case add(AddRequest)
    case copyMatching(MatchRequest)
    case update(UpdateRequest)
    case delete(DeleteRequest)
    case sessionStatus
    case unlock(SharedSecretBytes, AutoLock)
    case lock(LockExtent)
    case setAutoLock(AutoLock)
    case setPasscode(SharedSecretBytes, AutoLock)
    case changePasscode(from: SharedSecretBytes, to: SharedSecretBytes, rotatesKeys: Bool, AutoLock)
    case passcodeRemoval(SharedSecretBytes)
    case removePasscode(SharedSecretBytes, PasscodeRemoval)
    case requireCanAuthenticate(AccessControl.Constraint)
    case authenticate(AccessControl.Constraint, ItemAccessibility?, Authentication)
    /// Sends an event at each change from now on.
    case observeChanges
    /// Forgets an authentication context, which was invalidated or released.
    case forgetContext(Identifier128)
    /// What keychaind has of the user's keychain.
    case keptKeychain
    /// Begins to copy the user's keychain.
    case beginAdoption(KeychainKeys)
    case insertRows([HandedOverRow])
    case prepareAdoption
    /// Uses the copy from now on, because the signpost is in place.
    case finishAdoption
    /// Removes the prepared copy, because the signpost could not be put in the place of the file.
    case abandonAdoption
    /// Sends the rows of the keychain that is handed over, in several replies.
    case readRows
    case beginRelease(user: UInt32)
    case prepareRelease
    case finishRelease
    /// Keeps the keychain that was given back, apart from those that are used, because it differs from the file in its place.
    case setReleasedAside
    /// Unlocks the keychain of a user who has logged in, with the login password as it was typed, if that is the passcode.
    case unlockAtLogin(user: UInt32, SharedSecretBytes)
    /// Changes the passcode of a user's keychain along with the login password, if the former password is the passcode.
    case changePasscodeAtLogin(user: UInt32, from: SharedSecretBytes, to: SharedSecretBytes)
    /// Makes keychaind lock all keychains soon after the connection has ended.
    case watchSessions
    /// Locks the keychain of a user who has locked the screen or logged out; nil for all users.
    case lockWithSession(user: UInt32?)
    /// Makes the connection that of the program that verifies fingers, to which each further reply is a task.
    case serveFingerprints
    /// The outcome of the task before.
    case fingerprintAnswer(FingerprintAnswer)
    /// What the program can learn about biometry.
    case biometryStatus
    /// The path of the program that shows prompts for a program that keychaind serves.
    case agentProgram
    /// Makes the connection that of an agent, to which each further reply is a question.
    case showPrompts(AgentScope)
    /// The answer of the person to the question before.
    case answer(PromptAnswer)
    /// Lets the program read the items of another program's access group on this connection, if a person agrees.
    case requestAccess(group: String)
    /// What programs may read because a person has granted it.
    case grants
    /// Lets a program read the items of an access group from now on, if a person agrees.
    case grant(program: String, group: String)
    case revoke(program: String, group: String)
    /// Where items are, also those of other programs without an identity.
    case survey
    /// Where the generic passwords with an account are; services nil for all.
    case places(account: String, services: [String]?)
    /// Which program another process of the user executes.
    case identify(process: Int32)

    /// The number of the operation in the header of a packet.
    package var operation: UInt16 {
        switch self {
        case .add: 1
        case .copyMatching: 2
        case .update: 3
        case .delete: 4
        case .sessionStatus: 16
        case .unlock: 17
        case .lock: 18
        case .setAutoLock: 19
        case .setPasscode: 20
        case .changePasscode: 21
        case .passcodeRemoval: 22
        case .removePasscode: 23
        case .requireCanAuthenticate: 32
        case .authenticate: 33
        case .forgetContext: 34
        case .observeChanges: 48
        case .keptKeychain: 64
        case .beginAdoption: 65
        case .insertRows: 66
        case .prepareAdoption: 67
        case .readRows: 68
        case .beginRelease: 69
        case .prepareRelease: 70
        case .finishRelease: 71
        case .finishAdoption: 72
        case .setReleasedAside: 73
        case .abandonAdoption: 74
        case .unlockAtLogin: 80
        case .changePasscodeAtLogin: 81
        case .watchSessions: 96
        case .lockWithSession: 97
        case .agentProgram: 112
        case .showPrompts: 113
        case .answer: 114
        case .requestAccess: 128
        case .grants: 129
        case .grant: 130
        case .revoke: 131
        case .survey: 144
        case .places: 145
        case .identify: 146
        case .serveFingerprints: 147
        case .fingerprintAnswer: 148
        case .biometryStatus: 149
        }
    }
}

/// An authentication context of a program, as keychaind keeps a counterpart of it.
package struct ContextReference: Sendable {
    /// Chosen at random by the program, so that no other program of the user can name it.
    package let token: Identifier128
    package let settings: AuthenticationContext.Settings
    package let password: Password

    /// The application password of the context.
    package enum Password: Sendable {
        case none
        case given(SharedSecretBytes)
        /// That which a person has entered in keychaind's prompt, and which the program does not know.
        case kept
    }

    package init(token: Identifier128, settings: AuthenticationContext.Settings, password: Password) {
        self.token = token
        self.settings = settings
        self.password = password
    }
}

/// The body of a request: an authentication context, if the call has one, and the fields of the call.
package struct Request: Sendable {
    package let call: Call
    package let context: ContextReference?
    /// Whether only agents of the program itself may show a prompt for the call.
    package let asksOwnAgentsOnly: Bool

    package init(_ call: Call, context: ContextReference? = nil, asksOwnAgentsOnly: Bool = false) {
        self.call = call
        self.context = context
        self.asksOwnAgentsOnly = asksOwnAgentsOnly
    }

    package var message: Message {
        var writer = MessageWriter()
        writer.write(ifPresent: context) { writer, context in writer.write(context) }
        writer.write(asksOwnAgentsOnly)
        writer.write(call)
        return Message(.request, operation: call.operation, body: writer.bytes)
    }

    package init(parsing message: Message) throws(MalformedMessage) {
        guard message.kind == .request else { throw MalformedMessage() }
        var reader = MessageReader(message.body)
        let context = try reader.readIfPresent { reader throws(MalformedMessage) in try reader.readContext() }
        let asksOwnAgentsOnly = try reader.readFlag()
        let call = try reader.readCall(message.operation)
        try reader.finish()
        self.init(call, context: context, asksOwnAgentsOnly: asksOwnAgentsOnly)
    }
}

extension MessageWriter {
    fileprivate mutating func write(_ context: ContextReference) {
        write(context.token)
        write(context.settings.isInteractionAllowed)
        write(ifPresent: context.settings.reason) { writer, text in writer.write(text) }
        write(ifPresent: context.settings.cancelTitle) { writer, text in writer.write(text) }
        write(ifPresent: context.settings.reuseSeconds) { writer, seconds in writer.write(seconds.bitPattern) }
        switch context.password {
        case .none: write(0 as UInt8)
        case .given(let password):
            write(1 as UInt8)
            write(password.secret)
        case .kept: write(2 as UInt8)
        }
    }

    fileprivate mutating func write(_ authentication: Authentication) {
        switch authentication.interaction {
        case .allowed: write(0 as UInt8)
        case .forbidden: write(1 as UInt8)
        case .skippingItems: write(2 as UInt8)
        }
        write(ifPresent: authentication.prompt) { writer, text in writer.write(text) }
    }

    fileprivate mutating func write(_ autoLock: AutoLock) {
        write(ifPresent: autoLock.seconds) { writer, seconds in writer.write(seconds) }
    }

    fileprivate mutating func write(_ call: Call) {
        switch call {
        case .add(let request):
            write(request.itemClass.code)
            write(request.attributes)
            write(ifPresent: request.secret) { writer, secret in writer.write(secret) }
            write(ifPresent: request.accessControl) { writer, control in writer.write(control) }
            write(request.authentication)
        case .copyMatching(let request):
            write(request.query)
            write(ifPresent: request.limit) { writer, limit in writer.write(UInt64(max(limit, 0))) }
            write(request.includesSecrets)
            let selection = request.attributes.code
            write(selection.kind)
            write(selection.attribute)
            write(request.failsIfUnreadable)
            write(request.authentication)
        case .update(let request):
            write(request.query)
            write(request.changes)
            write(ifPresent: request.secret) { writer, secret in writer.write(secret) }
            write(ifPresent: request.accessControl) { writer, control in writer.write(control) }
            write(ifPresent: request.accessibility) { writer, accessibility in writer.write(accessibility.code) }
            write(ifPresent: request.leavesTombstone) { writer, leaves in writer.write(leaves) }
            write(request.authentication)
        case .delete(let request):
            write(request.query)
            write(ifPresent: request.leavesTombstone) { writer, leaves in writer.write(leaves) }
            write(request.authentication)
        case .sessionStatus, .observeChanges, .keptKeychain, .prepareAdoption, .finishAdoption, .readRows, .prepareRelease,
            .finishRelease, .setReleasedAside, .abandonAdoption, .watchSessions, .agentProgram, .grants, .survey, .serveFingerprints,
            .biometryStatus:
            break
        case .unlock(let passcode, let autoLock), .setPasscode(let passcode, let autoLock):
            write(passcode.secret)
            write(autoLock)
        case .lock(let extent): write(extent == .everything)
        case .setAutoLock(let autoLock): write(autoLock)
        case .changePasscode(let current, let new, let rotatesKeys, let autoLock):
            write(current.secret)
            write(new.secret)
            write(rotatesKeys)
            write(autoLock)
        case .passcodeRemoval(let passcode): write(passcode.secret)
        case .removePasscode(let passcode, let removal):
            write(passcode.secret)
            write(removal)
        case .requireCanAuthenticate(let constraint): write(constraint)
        case .authenticate(let constraint, let accessibility, let authentication):
            write(constraint)
            write(ifPresent: accessibility) { writer, accessibility in writer.write(accessibility.code) }
            write(authentication)
        case .forgetContext(let token): write(token)
        case .beginAdoption(let keys): write(keys)
        case .insertRows(let rows): write(rows)
        case .beginRelease(let user): write(user)
        case .unlockAtLogin(let user, let password):
            write(user)
            write(password.secret)
        case .changePasscodeAtLogin(let user, let current, let new):
            write(user)
            write(current.secret)
            write(new.secret)
        case .lockWithSession(let user): write(ifPresent: user) { writer, user in writer.write(user) }
        case .showPrompts(let scope): write(scope.rawValue)
        case .answer(let answer): write(answer)
        case .fingerprintAnswer(let answer): write(answer)
        case .requestAccess(let group): write(group)
        case .grant(let program, let group), .revoke(let program, let group):
            write(program)
            write(group)
        case .places(let account, let services):
            write(account)
            write(ifPresent: services) { writer, services in
                writer.write(UInt32(services.count))
                for service in services { writer.write(service) }
            }
        case .identify(let process): write(UInt32(bitPattern: process))
        }
    }
}

extension MessageReader {
    fileprivate mutating func readContext() throws(MalformedMessage) -> ContextReference {
        let token = try readIdentifier()
        var settings = AuthenticationContext.Settings()
        settings.isInteractionAllowed = try readFlag()
        settings.reason = try readIfPresent { reader throws(MalformedMessage) in try reader.readText() }
        settings.cancelTitle = try readIfPresent { reader throws(MalformedMessage) in try reader.readText() }
        settings.reuseSeconds = try readIfPresent { reader throws(MalformedMessage) in
            let seconds = Double(bitPattern: try reader.readUInt64())
            guard seconds.isFinite else { throw MalformedMessage() }
            return seconds
        }
        let password: ContextReference.Password
        switch try readByte() {
        case 0: password = .none
        case 1: password = .given(try required(try readSecret()))
        case 2: password = .kept
        default: throw MalformedMessage()
        }
        return ContextReference(token: token, settings: settings, password: password)
    }

    private mutating func readAuthentication() throws(MalformedMessage) -> Authentication {
        let interaction: Authentication.Interaction
        switch try readByte() {
        case 0: interaction = .allowed
        case 1: interaction = .forbidden
        case 2: interaction = .skippingItems
        default: throw MalformedMessage()
        }
        return Authentication(
            interaction: interaction, prompt: try readIfPresent { reader throws(MalformedMessage) in try reader.readText() })
    }

    private mutating func readAutoLock() throws(MalformedMessage) -> AutoLock {
        guard let seconds = try readIfPresent({ reader throws(MalformedMessage) in try reader.readUInt32() }) else { return .never }
        return .after(seconds: seconds)
    }

    mutating func readPasscode() throws(MalformedMessage) -> SharedSecretBytes {
        let secret = try required(try readSecret())
        guard secret.secret.byteCount <= Passcode.largestByteCount else { throw MalformedMessage() }
        return secret
    }

    private mutating func readOptionalFlag() throws(MalformedMessage) -> Bool? {
        try readIfPresent { reader throws(MalformedMessage) in try reader.readFlag() }
    }

    private mutating func readOptionalAccessibility() throws(MalformedMessage) -> ItemAccessibility? {
        try readIfPresent { reader throws(MalformedMessage) in try reader.readAccessibility() }
    }

    fileprivate mutating func readCall(_ operation: UInt16) throws(MalformedMessage) -> Call {
        switch operation {
        case 1:
            return .add(
                AddRequest(
                    itemClass: try readItemClass(), attributes: try readAttributes(),
                    secret: try readIfPresent { reader throws(MalformedMessage) in try reader.readWipeableData() },
                    accessControl: try readIfPresent { reader throws(MalformedMessage) in try reader.readAccessControl() },
                    authentication: try readAuthentication()))
        case 2:
            return .copyMatching(
                MatchRequest(
                    query: try readQuery(),
                    limit: try readIfPresent { reader throws(MalformedMessage) in
                        try reader.required(Int(exactly: try reader.readUInt64()))
                    },
                    includesSecrets: try readFlag(), attributes: try readSelection(), failsIfUnreadable: try readFlag(),
                    authentication: try readAuthentication()))
        case 3:
            return .update(
                UpdateRequest(
                    query: try readQuery(), changes: try readAttributes(),
                    secret: try readIfPresent { reader throws(MalformedMessage) in try reader.readWipeableData() },
                    accessControl: try readIfPresent { reader throws(MalformedMessage) in try reader.readAccessControl() },
                    accessibility: try readOptionalAccessibility(), leavesTombstone: try readOptionalFlag(),
                    authentication: try readAuthentication()))
        case 4:
            return .delete(
                DeleteRequest(query: try readQuery(), leavesTombstone: try readOptionalFlag(), authentication: try readAuthentication()))
        case 16: return .sessionStatus
        case 17: return .unlock(try readPasscode(), try readAutoLock())
        case 18: return .lock(try readFlag() ? .everything : .whenUnlocked)
        case 19: return .setAutoLock(try readAutoLock())
        case 20: return .setPasscode(try readPasscode(), try readAutoLock())
        case 21:
            return .changePasscode(
                from: try readPasscode(), to: try readPasscode(), rotatesKeys: try readFlag(), try readAutoLock())
        case 22: return .passcodeRemoval(try readPasscode())
        case 23: return .removePasscode(try readPasscode(), try readRemoval())
        case 32: return .requireCanAuthenticate(try readConstraint())
        case 33: return .authenticate(try readConstraint(), try readOptionalAccessibility(), try readAuthentication())
        case 34: return .forgetContext(try readIdentifier())
        case 48: return .observeChanges
        case 64: return .keptKeychain
        case 65: return .beginAdoption(try readKeys())
        case 66: return .insertRows(try readHandedOverRows())
        case 67: return .prepareAdoption
        case 68: return .readRows
        case 69: return .beginRelease(user: try readUInt32())
        case 70: return .prepareRelease
        case 71: return .finishRelease
        case 72: return .finishAdoption
        case 73: return .setReleasedAside
        case 74: return .abandonAdoption
        case 80: return .unlockAtLogin(user: try readUInt32(), try readPasscode())
        case 81: return .changePasscodeAtLogin(user: try readUInt32(), from: try readPasscode(), to: try readPasscode())
        case 96: return .watchSessions
        case 97: return .lockWithSession(user: try readIfPresent { reader throws(MalformedMessage) in try reader.readUInt32() })
        case 112: return .agentProgram
        case 113: return .showPrompts(try required(AgentScope(rawValue: try readByte())))
        case 114: return .answer(try readAnswer())
        case 128: return .requestAccess(group: try readText())
        case 129: return .grants
        case 130: return .grant(program: try readText(), group: try readText())
        case 131: return .revoke(program: try readText(), group: try readText())
        case 144: return .survey
        case 145:
            return .places(
                account: try readText(),
                services: try readIfPresent { reader throws(MalformedMessage) in
                    try reader.readList { reader throws(MalformedMessage) in try reader.readText() }
                })
        case 146: return .identify(process: try required(Int32(exactly: try readUInt32())))
        case 147: return .serveFingerprints
        case 148: return .fingerprintAnswer(try readFingerprintAnswer())
        case 149: return .biometryStatus
        default: throw MalformedMessage()
        }
    }

    private mutating func readSelection() throws(MalformedMessage) -> AttributeSelection {
        let kind = try readByte()
        return try required(AttributeSelection(code: (kind, try readByte())))
    }
}
