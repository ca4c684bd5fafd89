// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The folder of one invitation, as one side sees it: the messages that it has read, and those that it creates.
///
/// The storage may list anything, and may tear what it shows. An object is named by the hash of its bytes, so a torn one is read again.
struct JoinFolder {
    let invitation: InvitationID
    private let code: SharedSecretBytes
    private let cipher: any CircleCipher
    /// The objects of this side, which are created again if a listing lacks them.
    private var own: [(hash: ObjectHash, bytes: [UInt8])] = []
    /// The messages of others, in the order in which they were read.
    private(set) var messages: [JoinMessage] = []
    /// Whether an object is sealed under the code and has a later version of the format.
    private(set) var hasNewerMessage = false
    /// The objects that were read; those that are of no use are not read again.
    private var known: Set<ObjectHash> = []
    private var names: [ObjectHash: JoinMessage] = [:]
    private var reading: Set<ObjectHash> = []
    /// The objects that this side pays attention to, and how often each was asked for.
    private var attempts: [ObjectHash: Int] = [:]
    private(set) var listed: Set<ObjectHash>?

    init(code: SharedSecretBytes, cipher: any CircleCipher) throws(KeychainFailure) {
        invitation = try cipher.invitationID(of: code)
        self.code = code
        self.cipher = cipher
    }

    /// Whether everything that the last listing had was read, or could not be.
    var isRead: Bool { listed != nil && reading.isEmpty }

    private func name(_ hash: ObjectHash) -> String { ObjectName.joinMessage(invitation, hash).text }

    private func hash(of name: String) -> ObjectHash? {
        guard case .joinMessage(invitation, let hash) = ObjectName(name) else { return nil }
        return hash
    }

    // This side's messages

    /// Seals a message, and returns the effect that creates it.
    mutating func publish(_ message: JoinMessage) throws(KeychainFailure) -> SyncEffect {
        let bytes = try sealed(message)
        let hash = cipher.hash(bytes)
        own.append((hash, bytes))
        known.insert(hash)
        return .create(name(hash), bytes)
    }

    /// Seals a message that the engine publishes, after the statement that it contains.
    func outgoing(_ message: JoinMessage) throws(KeychainFailure) -> OutgoingObject {
        let bytes = try sealed(message)
        return OutgoingObject(name: name(cipher.hash(bytes)), bytes: bytes)
    }

    private func sealed(_ message: JoinMessage) throws(KeychainFailure) -> [UInt8] {
        try cipher.sealJoinMessage(message.encoded, kind: message.kind, code: code)
    }

    // Events

    /// Handles an event, and returns what has to be read or created.
    mutating func note(_ event: SyncEvent, now: Double) -> [SyncEffect] {
        switch event {
        case .wake:
            // What was not answered is asked for again.
            reading = []
            return [.list(.joinMessages), .wake(at: now + JoinLimits.pollInterval)]
        case .listed(.joinMessages, let names): return noteListing(names)
        case .read(let name, let bytes):
            guard let hash = hash(of: name) else { return [] }
            reading.remove(hash)
            if let bytes { receive(hash, bytes) }
            return []
        case .failed(let name):
            if let hash = hash(of: name) { reading.remove(hash) }
            return []
        case .listed, .appeared, .created, .itemsChanged, .command, .checkpoint: return []
        }
    }

    private mutating func noteListing(_ names: [String]) -> [SyncEffect] {
        let listed = Set(names.compactMap { hash(of: $0) })
        self.listed = listed
        var effects: [SyncEffect] = own.filter { !listed.contains($0.hash) }.map { .create(name($0.hash), $0.bytes) }
        for hash in listed.sorted() where !known.contains(hash) {
            guard attempts.count < JoinLimits.objectCount || attempts[hash] != nil, reading.insert(hash).inserted else { continue }
            attempts[hash, default: 0] += 1
            effects.append(.read(name(hash), atMost: JoinMessage.largestSealedByteCount))
        }
        return effects
    }

    private mutating func receive(_ hash: ObjectHash, _ bytes: [UInt8]) {
        guard attempts[hash] != nil, !known.contains(hash), cipher.hash(bytes) == hash else { return }
        known.insert(hash)
        for kind in JoinMessage.kinds {
            guard let content = opened(bytes, kind: kind) else { continue }
            do throws(FormatError) {
                let message = try JoinMessage(kind: kind, content)
                names[hash] = message
                messages.append(message)
            } catch {
                if error == .newer { hasNewerMessage = true }
            }
            return
        }
    }

    private func opened(_ bytes: [UInt8], kind: UInt8) -> [UInt8]? {
        do throws(KeychainFailure) {
            return try cipher.openJoinMessage(bytes, kind: kind, code: code)
        } catch {
            return nil
        }
    }

    /// Whether the last listing has a message; nil before the first one.
    func lists(_ message: JoinMessage) -> Bool? {
        guard let listed else { return nil }
        return listed.contains { names[$0] == message }
    }

    // The end

    /// Forgets this side's messages, so that none is created again, and returns the effects that remove them.
    mutating func removeOwn() -> [SyncEffect] {
        defer { own = [] }
        return own.map { .remove(name($0.hash)) }
    }

    /// Returns the effects that remove all messages of the invitation, apart from `kept`, by which another device learns that the code was used.
    mutating func removeAll(except kept: JoinMessage? = nil) -> [SyncEffect] {
        let others = (listed ?? []).subtracting(own.map(\.hash)).filter { kept == nil || names[$0] != kept }
        return removeOwn() + others.sorted().map { .remove(name($0)) }
    }

    /// Whether the other side has ended the attempt; `request` is nil if this one knows of none.
    func isEnded(_ request: ObjectHash?) -> Bool {
        messages.contains { if case .end(let named) = $0 { named == request || named == .none || request == nil } else { false } }
    }
}
