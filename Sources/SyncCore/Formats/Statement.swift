// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A signed, immutable statement about the devices of a circle.
///
/// Readable by everybody.
///
/// "KSST" ‖ version (1) ‖ kind (1) ‖ circle (16) ‖ author (16) ‖ count (2) ‖ heads (32) ‖ body ‖ signature (64)
///
/// The hash of a statement is the SHA-256 of everything before the signature, which covers a label and the hash. A founding statement has
/// zeros as its circle, because its hash names the circle.
package struct Statement: Hashable, Sendable {
    package let hash: StatementHash
    package let circle: CircleID
    package let author: DeviceID
    /// The newest statements that the author counted; it counted their predecessors too.
    package let heads: [StatementHash]
    package let body: Body
    package let signature: [UInt8]

    package enum Body: Hashable, Sendable {
        case found(Founding)
        case admit(Admission)
        case remove(Removal)
        case rekey(Rekeying)
        /// What a remaining device had of a removed device when it learned of the removal. The heads are the content.
        case witness
    }

    /// `suite (1) ‖ random bytes (32) ‖ public keys (96)`.
    package struct Founding: Hashable, Sendable {
        package let nonce: [UInt8]
        package let keys: DevicePublicKeys

        package init(nonce: [UInt8], keys: DevicePublicKeys) {
            self.nonce = nonce
            self.keys = keys
        }
    }

    /// `public keys (96) ‖ role (1) ‖ [circle code (32)]`; with a note, `public keys (96) ‖ note`, of a reader.
    package struct Admission: Hashable, Sendable {
        package let device: DeviceID
        package let keys: DevicePublicKeys
        package let role: DeviceRole
        /// For a recovery kit, and for no other device: the code by which its holder recognizes the circle.
        package let circleCode: [UInt8]?
        /// For the reader that a credential stands for, and for no other device: what owners are told of the credential.
        package let note: CredentialNote.Sealed?

        package init(
            device: DeviceID, keys: DevicePublicKeys, role: DeviceRole, circleCode: [UInt8]?, note: CredentialNote.Sealed? = nil
        ) {
            self.device = device
            self.keys = keys
            self.role = role
            self.circleCode = circleCode
            self.note = note
        }
    }

    /// `device (16) ‖ count (2) ‖ checkpoints (32)`.
    package struct Removal: Hashable, Sendable {
        package let device: DeviceID
        /// Checkpoints of the removed device that stay usable.
        package let checkpoints: [CheckpointHash]

        static let largestCheckpointCount = 16

        package init(device: DeviceID, checkpoints: [CheckpointHash]) {
            self.device = device
            self.checkpoints = checkpoints
        }
    }

    /// `lane (1) ‖ generation (8) ‖ key id (16) ‖ count (2) ‖ boxes (16 + 80) ‖ count (2) ‖ wrapped older keys (16 + 40)`.
    package struct Rekeying: Hashable, Sendable {
        package let lane: Lane
        /// One more than the highest that the author counted, or that of the key that is boxed again.
        package let generation: UInt64
        package let key: LaneKeyID
        package let boxes: [Box]
        package let olderKeys: [WrappedKey]

        /// The largest number of boxes, and of wrapped keys, in one statement.
        ///
        /// Several statements describe a key with more.
        static let largestKeyCount = 4_096

        package struct Box: Hashable, Sendable {
            package let device: DeviceID
            package let bytes: [UInt8]

            package init(device: DeviceID, bytes: [UInt8]) {
                self.device = device
                self.bytes = bytes
            }
        }

        package struct WrappedKey: Hashable, Sendable {
            package let key: LaneKeyID
            package let bytes: [UInt8]

            package init(key: LaneKeyID, bytes: [UInt8]) {
                self.key = key
                self.bytes = bytes
            }
        }

        package init(lane: Lane, generation: UInt64, key: LaneKeyID, boxes: [Box], olderKeys: [WrappedKey]) {
            self.lane = lane
            self.generation = generation
            self.key = key
            self.boxes = boxes
            self.olderKeys = olderKeys
        }
    }

    package init(
        hash: StatementHash, circle: CircleID, author: DeviceID, heads: [StatementHash], body: Body, signature: [UInt8]
    ) {
        self.hash = hash
        self.circle = circle
        self.author = author
        self.heads = heads
        self.body = body
        self.signature = signature
    }
}

extension Statement {
    /// The largest statement, which is greater than one with the largest number of heads, boxes, and wrapped keys.
    package static let largestByteCount = 1_048_576
    private static let version: UInt8 = 1
    private static let suite: UInt8 = 1
    private static let wrappedKeyByteCount = 40
    static let largestHeadCount = 256

    /// Creates and signs a statement.
    package init(
        _ body: Body, circle: CircleID?, author: DeviceID, heads: [StatementHash], keys: any CircleDeviceKeys, cipher: any CircleCipher
    ) throws(KeychainFailure) {
        let unsigned = Self.unsignedBytes(circle: circle, author: author, heads: heads, body)
        let hash = cipher.hash(unsigned)
        self.init(
            hash: hash, circle: circle ?? CircleID(hash.prefix), author: author, heads: heads, body: body,
            signature: try keys.sign(Self.signedMessage(hash)))
    }

    package var encoded: [UInt8] {
        var isFounding = false
        if case .found = body { isFounding = true }
        return Self.unsignedBytes(circle: isFounding ? nil : circle, author: author, heads: heads, body) + signature
    }

    package static func signedMessage(_ hash: StatementHash) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append("keychain sync statement v1")
        bytes.append(hash)
        return bytes
    }

    private static func unsignedBytes(circle: CircleID?, author: DeviceID, heads: [StatementHash], _ body: Body) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append("KSST")
        bytes.append(version)
        bytes.append(body.kind)
        bytes.append(circle ?? CircleID(Identifier128(high: 0, low: 0)))
        bytes.append(author)
        bytes.append(count: heads.count)
        for head in heads { bytes.append(head) }
        body.append(to: &bytes, suite: suite)
        return bytes
    }

    /// Parses a statement.
    ///
    /// The caller checks the signature, for which it needs the author's keys.
    package init(_ bytes: [UInt8], cipher: any CircleCipher) throws(FormatError) {
        guard bytes.count <= Self.largestByteCount else { throw .malformed }
        var reader = FieldReader(bytes)
        try reader.header("KSST", version: Self.version)
        let kind = try reader.byte()
        let circle = CircleID(try reader.identifier())
        let author = DeviceID(try reader.identifier())
        var heads: [StatementHash] = []
        for _ in 0..<(try reader.count(ofElementsOf: 32, atMost: Self.largestHeadCount)) {
            let head = try reader.hash()
            if let last = heads.last, !(last < head) { throw .malformed }
            heads.append(head)
        }
        let body = try Body(kind: kind, from: &reader, suite: Self.suite, cipher: cipher)
        let signature = try reader.bytes(LogMark.signatureByteCount)
        try reader.end()
        let hash = cipher.hash(Array(bytes.dropLast(LogMark.signatureByteCount)))
        if case .found(let founding) = body {
            guard circle.value == Identifier128(high: 0, low: 0), heads.isEmpty,
                author == DeviceID(of: founding.keys, role: .owner, cipher: cipher)
            else { throw .malformed }
        } else {
            guard !heads.isEmpty else { throw .malformed }
        }
        self.init(
            hash: hash, circle: kind == Body.foundKind ? CircleID(hash.prefix) : circle, author: author, heads: heads, body: body,
            signature: signature)
    }
}

extension DeviceID {
    /// The identifier of the device with these public keys and this role.
    ///
    /// A device with another role is another one, so no role ever changes: two owners may admit one device in different roles at the same time.
    package init(of keys: DevicePublicKeys, role: DeviceRole, cipher: any CircleCipher) {
        var bytes: [UInt8] = []
        bytes.append("keychain sync device v1")
        bytes.append(contentsOf: keys.signing + keys.whenUnlockedBox + keys.afterFirstUnlockBox)
        bytes.append(role.rawValue)
        self.init(cipher.hash(bytes).prefix)
    }
}

extension Statement.Body {
    static let foundKind: UInt8 = 1

    var kind: UInt8 {
        switch self {
        case .found: Self.foundKind
        case .admit(let admission): admission.note == nil ? 2 : 6
        case .remove: 3
        case .rekey: 4
        case .witness: 5
        }
    }

    func append(to bytes: inout [UInt8], suite: UInt8) {
        switch self {
        case .found(let founding):
            bytes.append(suite)
            bytes.append(contentsOf: founding.nonce)
            bytes.append(founding.keys)
        case .admit(let admission):
            bytes.append(admission.keys)
            if let note = admission.note { return note.append(to: &bytes) }
            bytes.append(admission.role.rawValue)
            bytes.append(contentsOf: admission.circleCode ?? [])
        case .remove(let removal):
            bytes.append(removal.device)
            bytes.append(count: removal.checkpoints.count)
            for checkpoint in removal.checkpoints { bytes.append(checkpoint) }
        case .rekey(let rekeying):
            bytes.append(rekeying.lane.rawValue)
            bytes.append(littleEndian: rekeying.generation)
            bytes.append(rekeying.key)
            bytes.append(count: rekeying.boxes.count)
            for box in rekeying.boxes {
                bytes.append(box.device)
                bytes.append(contentsOf: box.bytes)
            }
            bytes.append(count: rekeying.olderKeys.count)
            for older in rekeying.olderKeys {
                bytes.append(older.key)
                bytes.append(contentsOf: older.bytes)
            }
        case .witness: break
        }
    }

    init(kind: UInt8, from reader: inout FieldReader, suite: UInt8, cipher: any CircleCipher) throws(FormatError) {
        switch kind {
        case Self.foundKind:
            let found = try reader.byte()
            guard found == suite else { throw found > suite ? .newer : .malformed }
            self = .found(Statement.Founding(nonce: try reader.bytes(32), keys: try reader.usableKeys(cipher)))
        case 2:
            let keys = try reader.usableKeys(cipher)
            guard let role = DeviceRole(rawValue: try reader.byte()) else { throw .malformed }
            self = .admit(
                Statement.Admission(
                    device: DeviceID(of: keys, role: role, cipher: cipher), keys: keys, role: role,
                    circleCode: role == .recoveryKit ? try reader.bytes(32) : nil))
        case 3:
            let device = DeviceID(try reader.identifier())
            var checkpoints: [CheckpointHash] = []
            for _ in 0..<(try reader.count(ofElementsOf: 32, atMost: Statement.Removal.largestCheckpointCount)) {
                checkpoints.append(try reader.hash())
            }
            self = .remove(Statement.Removal(device: device, checkpoints: checkpoints))
        case 4:
            guard let lane = Lane(rawValue: try reader.byte()) else { throw .malformed }
            let generation = try reader.uint64()
            let key = LaneKeyID(try reader.identifier())
            var boxes: [Statement.Rekeying.Box] = []
            for _ in 0..<(try reader.count(ofElementsOf: 96, atMost: Statement.Rekeying.largestKeyCount)) {
                boxes.append(.init(device: DeviceID(try reader.identifier()), bytes: try reader.bytes(LaneKeyBox.byteCount)))
            }
            var olderKeys: [Statement.Rekeying.WrappedKey] = []
            for _ in 0..<(try reader.count(ofElementsOf: 56, atMost: Statement.Rekeying.largestKeyCount)) {
                olderKeys.append(.init(key: LaneKeyID(try reader.identifier()), bytes: try reader.bytes(40)))
            }
            self = .rekey(
                Statement.Rekeying(lane: lane, generation: generation, key: key, boxes: boxes, olderKeys: olderKeys))
        case 5: self = .witness
        case 6:
            let keys = try reader.usableKeys(cipher)
            self = .admit(
                Statement.Admission(
                    device: DeviceID(of: keys, role: .reader, cipher: cipher), keys: keys, role: .reader, circleCode: nil,
                    note: try CredentialNote.Sealed(from: &reader)))
        default: throw .newer
        }
    }
}

extension [UInt8] {
    mutating func append(_ keys: DevicePublicKeys) {
        append(contentsOf: keys.signing)
        append(contentsOf: keys.whenUnlockedBox)
        append(contentsOf: keys.afterFirstUnlockBox)
    }
}

extension DevicePublicKeys {
    /// Whether lane keys can be sealed to the device.
    ///
    /// Otherwise no member could box a key for it, and none could seal any more.
    func areUsable(_ cipher: any CircleCipher) -> Bool { Lane.allCases.allSatisfy { cipher.isUsable(boxKey: box(for: $0)) } }
}

extension FieldReader {
    fileprivate mutating func usableKeys(_ cipher: any CircleCipher) throws(FormatError) -> DevicePublicKeys {
        let keys = try publicKeys()
        guard keys.areUsable(cipher) else { throw .malformed }
        return keys
    }

    mutating func publicKeys() throws(FormatError) -> DevicePublicKeys {
        let signing = try bytes(DevicePublicKeys.keyByteCount)
        let whenUnlocked = try bytes(DevicePublicKeys.keyByteCount)
        let afterFirstUnlock = try bytes(DevicePublicKeys.keyByteCount)
        guard let keys = DevicePublicKeys(signing: signing, whenUnlockedBox: whenUnlocked, afterFirstUnlockBox: afterFirstUnlock) else {
            throw .malformed
        }
        return keys
    }
}
