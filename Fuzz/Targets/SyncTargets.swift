// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

@testable internal import Keybag

/// The objects of synchronization, of which the storage can contain any bytes: an object is refused, or is read as a value that is written as
/// the same bytes.
///
/// A table of logs may have another order than the one in which this program writes it, so contents are compared as values.
private enum SyncParts {
    static let circle = CircleID(Identifier128(high: 1, low: 2))
    static let device = DeviceID(Identifier128(high: 3, low: 4))
    static let laneKey = LaneKeyID(Identifier128(high: 5, low: 6))
    static let hash = ObjectHash(prefix: Identifier128(high: 7, low: 8), suffix: Identifier128(high: 9, low: 10))
    static let sealed = SealedContent(wrappedKey: bytes(40), ciphertext: bytes(100))
    static let signature = bytes(64)
    static let mark = LogMark(
        log: LogID(Identifier128(high: 11, low: 12)), device: device, number: 2, previous: hash, hash: hash, signature: signature)
    static let content = SyncContent(
        itemClass: .genericPassword, accessibility: .whenUnlocked, attributes: [1, 2, 3], secret: Array("12345".utf8))

    static func reference(_ log: UInt64) -> VersionReference {
        VersionReference(
            id: SyncVersionID(Identifier128(high: 13, low: log)),
            origin: Origin(log: LogID(Identifier128(high: 14, low: log)), number: log + 1, hash: hash.prefix))
    }

    static func keys() throws -> DevicePublicKeys {
        guard let keys = DevicePublicKeys(signing: bytes(32), whenUnlockedBox: bytes(32), afterFirstUnlockBox: bytes(32)) else {
            throw FixedKeys.Impossible()
        }
        return keys
    }

    static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) } }

    /// Reads a value, which may be refused as malformed or as that of a later version.
    static func read<Value>(_ body: () throws(FormatError) -> Value) -> Value? {
        attempt(expecting: { (_: FormatError) in true }, body)
    }
}

/// Batches: the frame, which anyone can write, and the content, which a member can.
struct BatchTarget: FuzzTarget {
    static let name = "batch"

    static func seeds() -> [[UInt8]] {
        let frames = [UInt64(1), 2].map { number in
            BatchFrame(
                header: BatchFrame.Header(
                    circle: SyncParts.circle, log: SyncParts.mark.log, device: SyncParts.device, lane: .afterFirstUnlock, number: number,
                    previous: number == 1 ? .none : SyncParts.hash, laneKey: SyncParts.laneKey),
                sealed: SyncParts.sealed, signature: SyncParts.signature)
        }
        let content = BatchContent(
            notes: BatchNotes(seconds: 7e8, marks: [SyncParts.mark], heads: [SyncParts.hash], deviceName: Array("eagle-5".utf8)),
            versions: [
                VersionRecord(
                    id: SyncParts.reference(1).id, replaced: [SyncParts.reference(2), SyncParts.reference(3)], content: SyncParts.content),
                VersionRecord(id: SyncParts.reference(4).id, replaced: [SyncParts.reference(2)], content: nil),
            ])
        return frames.map { [0] + $0.encoded } + [[1] + content.encoded]
    }

    func run(_ input: [UInt8]) {
        var input = InputReader(input)
        let isContent = input.byte() & 1 == 1
        let bytes = Array(input.rest)
        if isContent {
            guard let content = SyncParts.read({ () throws(FormatError) in try BatchContent(bytes) }) else { return }
            expect(content.versions.count <= BatchContent.largestVersionCount, "a batch has too many versions")
            expect(content.notes.seconds.isFinite, "a date that is no number is accepted")
            let again = SyncParts.read { () throws(FormatError) in try BatchContent(content.encoded) }
            expect(again == content, "the content of a batch is written as another one")
        } else {
            guard let frame = SyncParts.read({ () throws(FormatError) in try BatchFrame(bytes) }) else { return }
            expect(frame.encoded == bytes, "a batch is accepted in a form that is never written")
        }
    }
}

/// Statements about the members of a circle, whose signature is checked later.
struct StatementTarget: FuzzTarget {
    static let name = "statement"

    private let cipher = CircleCryptography()

    static func seeds() throws -> [[UInt8]] {
        let cipher = CircleCryptography()
        let keys = try SyncParts.keys()
        let founder = DeviceID(of: keys, role: .owner, cipher: cipher)
        let rekeying = Statement.Rekeying(
            lane: .whenUnlocked, generation: 2, key: SyncParts.laneKey,
            boxes: [.init(device: SyncParts.device, bytes: SyncParts.bytes(LaneKeyBox.byteCount))],
            olderKeys: [.init(key: SyncParts.laneKey, bytes: SyncParts.bytes(40))])
        let bodies: [Statement.Body] = [
            .found(.init(nonce: SyncParts.bytes(32), keys: keys)),
            .admit(.init(device: founder, keys: keys, role: .recoveryKit, circleCode: SyncParts.bytes(32))),
            .admit(.init(device: founder, keys: keys, role: .reader, circleCode: nil)),
            .admit(
                .init(
                    device: DeviceID(of: keys, role: .reader, cipher: cipher), keys: keys, role: .reader, circleCode: nil,
                    note: CredentialNote.Sealed(laneKey: SyncParts.laneKey, content: SyncParts.sealed))),
            .remove(.init(device: founder, checkpoints: [SyncParts.hash])), .rekey(rekeying), .witness,
        ]
        return bodies.map { body in
            var isFounding = false
            if case .found = body { isFounding = true }
            let statement = Statement(
                hash: SyncParts.hash, circle: SyncParts.circle, author: isFounding ? founder : SyncParts.device,
                heads: isFounding ? [] : [SyncParts.hash], body: body, signature: SyncParts.signature)
            return statement.encoded
        }
    }

    func run(_ input: [UInt8]) {
        guard let statement = SyncParts.read({ () throws(FormatError) in try Statement(input, cipher: cipher) }) else { return }
        expect(statement.encoded == input, "a statement is accepted in a form that is never written")
        if case .admit(let admission) = statement.body {
            expect(
                admission.device == DeviceID(of: admission.keys, role: admission.role, cipher: cipher),
                "a device is admitted under the name of another one")
        }
    }
}

/// Checkpoints: the manifest and the pieces, and their contents.
struct CheckpointTarget: FuzzTarget {
    static let name = "checkpoint"

    private static let kinds: [CheckpointPiece.Kind] = [.coverage, .awaited, .versions]

    static func seeds() -> [[UInt8]] {
        let manifest = CheckpointManifest(
            circle: SyncParts.circle, author: SyncParts.device, laneKey: SyncParts.laneKey, sealed: SyncParts.sealed,
            signature: SyncParts.signature)
        let content = CheckpointContent(seconds: 7e8, pieces: kinds.map { CheckpointContent.Piece(kind: $0, hash: SyncParts.hash) })
        let piece = CheckpointPiece(
            circle: SyncParts.circle, lane: .whenUnlocked, kind: .versions, laneKey: SyncParts.laneKey, sealed: SyncParts.sealed)
        let covered = PieceContent.CoveredBatch(log: SyncParts.mark.log, device: SyncParts.device, number: 2, hash: SyncParts.hash)
        let contents: [PieceContent] = [
            .coverage([covered, covered], [SyncParts.mark]), .awaited([SyncParts.reference(1), SyncParts.reference(2)]),
            .versions([.init(reference: SyncParts.reference(1), content: SyncParts.content)]),
        ]
        return [[0] + manifest.encoded, [1] + content.encoded, [2] + piece.encoded]
            + contents.enumerated().map { [UInt8(3 + $0.offset)] + $0.element.encoded }
    }

    func run(_ input: [UInt8]) {
        var input = InputReader(input)
        let choice = input.choice(below: 6)
        let bytes = Array(input.rest)
        switch choice {
        case 0:
            guard let manifest = SyncParts.read({ () throws(FormatError) in try CheckpointManifest(bytes) }) else { return }
            expect(manifest.encoded == bytes, "a manifest is accepted in a form that is never written")
        case 1:
            guard let content = SyncParts.read({ () throws(FormatError) in try CheckpointContent(bytes) }) else { return }
            expect(content.encoded == bytes, "the content of a manifest is accepted in a form that is never written")
        case 2:
            guard let piece = SyncParts.read({ () throws(FormatError) in try CheckpointPiece(bytes) }) else { return }
            expect(piece.encoded == bytes, "a piece is accepted in a form that is never written")
        default:
            let kind = Self.kinds[choice - 3]
            guard let content = SyncParts.read({ () throws(FormatError) in try PieceContent(kind, bytes) }) else { return }
            let again = SyncParts.read { () throws(FormatError) in try PieceContent(kind, content.encoded) }
            expect(content.kind == kind && again == content, "the content of a piece is written as another one")
        }
    }
}

/// The messages with which a device joins a circle, below their seal: a stranger with the code can write any.
struct JoinMessageTarget: FuzzTarget {
    static let name = "join-message"

    static func seeds() throws -> [[UInt8]] {
        let messages: [JoinMessage] = [
            .offer(.init(circle: SyncParts.circle, approver: SyncParts.device, commitment: SyncParts.hash)),
            .request(
                .init(offer: SyncParts.hash, keys: try SyncParts.keys(), nonce: SyncParts.bytes(32), deviceName: Array("eagle-5".utf8))),
            .reveal(nonce: SyncParts.bytes(32), request: SyncParts.hash),
            .end(request: SyncParts.hash),
            .answer(
                .init(
                    approver: try SyncParts.keys(), founding: [1, 2], admission: [3], marks: [SyncParts.mark], checkpoint: SyncParts.hash,
                    signature: SyncParts.signature)),
            .answer(
                .init(
                    approver: try SyncParts.keys(), founding: [], admission: [], marks: [], checkpoint: nil,
                    signature: SyncParts.signature)),
        ]
        return messages.map { [$0.kind] + $0.encoded }
    }

    func run(_ input: [UInt8]) {
        var input = InputReader(input)
        let kind = input.byte()
        let bytes = Array(input.rest)
        guard let message = SyncParts.read({ () throws(FormatError) in try JoinMessage(kind: kind, bytes) }) else { return }
        expect(message.kind == kind && message.encoded == bytes, "a message is accepted in a form that is never written")
    }
}

/// Credentials of readers, and the notes about them below their seal, which any owner can write.
///
/// The secret decides the keys that the admission has to name, so that of the input is replaced by a fixed one.
struct CredentialTarget: FuzzTarget {
    static let name = "credential"

    private let cipher = CircleCryptography()
    private static let fixedSecret = [UInt8](repeating: 7, count: 32)

    static func seeds() throws -> [[UInt8]] {
        let cipher = CircleCryptography()
        guard let name = DeviceName("web") else { throw FixedKeys.Impossible() }
        let note = CredentialNote(name: name, expiration: 8e8)
        let owner = try DeviceKeys(
            signingKey: makeSecret(), whenUnlockedBoxKey: makeSecret(), afterFirstUnlockBoxKey: makeSecret())
        let device = DeviceID(of: owner.publicKeys, role: .owner, cipher: cipher)
        let founding = try Statement(
            .found(.init(nonce: SyncParts.bytes(32), keys: owner.publicKeys)), circle: nil, author: device, heads: [], keys: owner,
            cipher: cipher)
        let keys = try cipher.deviceKeys(ofCredential: makeSecret()).publicKeys
        let admission = try Statement(
            .admit(
                .init(
                    device: DeviceID(of: keys, role: .reader, cipher: cipher), keys: keys, role: .reader, circleCode: nil,
                    note: CredentialNote.Sealed(laneKey: SyncParts.laneKey, content: SyncParts.sealed))),
            circle: founding.circle, author: device, heads: [founding.hash], keys: owner, cipher: cipher)
        var content: [UInt8] = []
        content.append(littleEndian: note.expiration.bitPattern)
        for part in [note.name.utf8, Array("/srv/fleet".utf8), founding.encoded, admission.encoded] { content.append(lengthPrefixed: part) }
        content += [0, 0]
        return [[0] + Array("KSCR".utf8) + [1] + fixedSecret + content, [1] + note.encoded]
    }

    private static func makeSecret() throws(KeychainFailure) -> SharedSecretBytes { SharedSecretBytes(try bytes(fixedSecret)) }

    private static func bytes(_ bytes: [UInt8]) throws(KeychainFailure) -> SecretBytes {
        // The region has as many bytes, or one that stays zero.
        try unsafe SecretBytes(byteCount: max(bytes.count, 1)) { unsafe $0.copyBytes(from: bytes) }
    }

    func run(_ input: [UInt8]) throws {
        var input = InputReader(input)
        let isNote = input.byte() & 1 == 1
        var bytes = Array(input.rest)
        if isNote {
            guard let note = SyncParts.read({ () throws(FormatError) in try CredentialNote(bytes) }) else { return }
            expect(note.encoded == bytes, "a note is accepted in a form that is never written")
        } else {
            if bytes.count >= 37 { bytes.replaceSubrange(5..<37, with: Self.fixedSecret) }
            let secret = try Self.bytes(bytes)
            let credential = attempt(failingWith: .decode) { () throws(KeychainFailure) in
                try ReaderCredential(secret, cipher: cipher)
            }
            guard let credential else { return }
            let encoded = try credential.encoded()
            // The bytes are copied within the closure.
            let again = unsafe encoded.withBytes { unsafe Array($0) }
            expect(again == bytes, "a credential is accepted in a form that is never written")
        }
    }
}
