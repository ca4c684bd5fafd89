// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore
internal import KeychainSystem

/// The requests for secrets of sandboxed applications.
///
/// The front end, xdg-desktop-portal, finds out which application has called it, and asks for the secret of that one.
struct SecretPortal {
    static let busName = "org.freedesktop.impl.portal.desktop.keychain"
    /// The name of the front end, the only program that is answered.
    static let frontEndName = "org.freedesktop.portal.Desktop"
    static let interface = "org.freedesktop.impl.portal.Secret"
    static let requestInterface = "org.freedesktop.impl.portal.Request"
    static let version: UInt32 = 1
    private static let path = "/org/freedesktop/portal/desktop"

    /// What a request is answered with.
    enum Response: UInt32 {
        case success = 0
        /// A person has refused to unlock the keychain, or the front end does not need the secret any more.
        case canceled = 1
        case other = 2
    }

    struct Request {
        let call: PendingCall
        /// The connection of the front end.
        let owner: String
        /// The object by which the front end ends the request.
        let handle: String
        let application: String
        /// Where the secret is written.
        let file: SharedFile
        /// The prompt that it waits for.
        var prompt: ObjectPath?
    }

    /// The largest number of requests at one time, of all applications and of one, which must not take the place of others.
    static let requestLimit = 128
    static let requestLimitForApplication = 8
    /// The largest identifier of an application: as many bytes as a name on the bus can have.
    static let largestApplicationByteCount = 255

    let secrets: ApplicationSecrets
    private(set) var requests: [UInt64: Request] = [:]
    private var lastNumber: UInt64 = 0

    init(_ keychain: any Keychain) { secrets = ApplicationSecrets(keychain) }

    /// Returns what a path names; nil if it is none of the portal.
    func object(at path: String) -> ServedObject? {
        guard path.hasPrefix(Self.path) else { return nil }
        if path == Self.path { return .portal }
        return requests.first { $0.value.handle == path }.map { .portalRequest($0.key) }
    }

    mutating func add(_ request: Request) throws(BusError) -> UInt64 {
        guard request.handle.hasPrefix(Self.path + "/"), object(at: request.handle) == nil else {
            throw .invalidArguments("the handle is not below \(Self.path), or is that of another request")
        }
        let ownCount = requests.values.count { $0.application.hasSameBytes(as: request.application) }
        guard requests.count < Self.requestLimit, ownCount < Self.requestLimitForApplication else {
            throw .limitsExceeded("there are too many requests")
        }
        lastNumber += 1
        requests[lastNumber] = request
        return lastNumber
    }

    mutating func setPrompt(_ prompt: ObjectPath?, of number: UInt64) { requests[number]?.prompt = prompt }

    func request(waitingFor prompt: ObjectPath) -> UInt64? { requests.first { $0.value.prompt == prompt }?.key }

    mutating func remove(_ number: UInt64) -> Request? { requests.removeValue(forKey: number) }

    mutating func removeAll(of owner: String) { requests = requests.filter { $0.value.owner != owner } }
}

/// The interface `org.freedesktop.impl.portal.Secret`.
extension SecretServiceBridge {
    /// How long an application has to make room for its secret.
    private static let deliverySeconds: UInt32 = 2

    /// Takes the name of the portal, if no other program has it: the keyring works without.
    func takePortalName() {
        guard (try? bus.take(SecretPortal.busName)) != true else { return }
        try? FileDescriptor.standardError.writeAll(
            "keychain-secret-service: another program has the name \(SecretPortal.busName)\n".utf8)
    }

    func performPortal(_ message: BusMessage) throws(BusError) -> Bool {
        guard message.member == "RetrieveSecret" else { return false }
        // Any other program could name any application.
        guard bus.isOwner(message.sender, of: SecretPortal.frontEndName) else { throw .invalidCaller }
        let handle = try message.readPath()
        let application = try message.readText()
        let descriptor = try message.readDescriptor()
        // Programs that are not in a sandbox have no name, and must not share a secret.
        guard !application.isEmpty, application.utf8.count <= SecretPortal.largestApplicationByteCount,
            let file = try? SharedFile(copying: descriptor)
        else {
            try reply(.other, to: message)
            return true
        }
        let request = SecretPortal.Request(
            call: PendingCall(message), owner: message.sender, handle: handle, application: application, file: file)
        let number = try portal.add(request)
        do throws(BusError) {
            if try isLocked() {
                portal.setPrompt(try prompts.ask(for: message.sender), of: number)
            } else {
                deliver(number)
            }
        } catch {
            respond(.other, to: number)
        }
        return true
    }

    func performPortalRequest(_ message: BusMessage, _ number: UInt64) throws(BusError) -> Bool {
        guard message.member == "Close" else { return false }
        guard portal.requests[number]?.owner == message.sender else { throw .invalidCaller }
        try message.reply()
        let prompt = portal.requests[number]?.prompt
        respond(.canceled, to: number)
        if let prompt { prompts.cancel(prompt) }
        return true
    }

    /// Continues the request that has waited for a prompt; returns false if none has.
    func completePortal(_ completion: Prompts.Completion) -> Bool {
        guard let number = portal.request(waitingFor: completion.path) else { return false }
        portal.setPrompt(nil, of: number)
        if completion.isDismissed { respond(.canceled, to: number) } else { deliver(number) }
        return true
    }

    /// Writes the secret on a thread of its own, because the application may never read: ends with `Inbox.Event.delivered`.
    private func deliver(_ number: UInt64) {
        guard let request = portal.requests[number], let secret = try? portal.secrets.secret(of: request.application) else {
            return respond(.other, to: number)
        }
        let (file, inbox) = (request.file, inbox)
        let isStarted = BackgroundThread.start {
            var bytes = [UInt8](secret)
            secret.wipeShared()
            let isWritten = (try? file.writeAll(bytes, until: .after(seconds: Self.deliverySeconds))) != nil
            bytes.wipe()
            inbox.post(.delivered(request: number, isWritten: isWritten))
        }
        if !isStarted { respond(.other, to: number) }
    }

    /// Answers a request, unless it has ended.
    func respond(_ response: SecretPortal.Response, to number: UInt64) {
        guard let request = portal.remove(number) else { return }
        // A front end that has left needs no answer.
        try? reply(response, to: request.call.message)
    }

    private func reply(_ response: SecretPortal.Response, to message: BusMessage) throws(BusError) {
        try message.reply { reply throws(BusError) in
            try reply.append(number: response.rawValue)
            try reply.appendContainer(BusType.array, "{sv}") { () throws(BusError) in }
        }
    }
}
#endif
