// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

@Suite("The formats")
struct FormatTests {
    private let cipher = FakeCipher(seed: 3)

    private func identifier(_ random: inout SeededGenerator) -> Identifier128 { Identifier128(high: random.next(), low: random.next()) }
    private func hash(_ random: inout SeededGenerator) -> ObjectHash {
        ObjectHash(prefix: identifier(&random), suffix: identifier(&random))
    }

    private func bytes(_ random: inout SeededGenerator, _ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    private func reference(_ random: inout SeededGenerator) -> VersionReference {
        VersionReference(
            id: SyncVersionID(identifier(&random)),
            origin: Origin(log: LogID(identifier(&random)), number: 1 + random.next() >> 1, hash: identifier(&random)))
    }

    private func content(_ random: inout SeededGenerator) -> SyncContent {
        SyncContent(
            itemClass: random.chance(0.5) ? .genericPassword : .internetPassword,
            accessibility: random.chance(0.5) ? .whenUnlocked : .always,
            attributes: bytes(&random, random.below(40)), secret: random.chance(0.3) ? nil : bytes(&random, random.below(40)))
    }

    private func mark(_ random: inout SeededGenerator) -> LogMark {
        LogMark(
            log: LogID(identifier(&random)), device: DeviceID(identifier(&random)), number: 1 + random.next() >> 1, previous: hash(&random),
            hash: hash(&random), signature: bytes(&random, 64))
    }

    private func batchContent(_ random: inout SeededGenerator) -> BatchContent {
        let versions = (0..<random.below(5)).map { _ in
            let replaced = (0..<random.below(4)).map { _ in reference(&random) }
            return VersionRecord(
                id: SyncVersionID(identifier(&random)), replaced: replaced, content: random.chance(0.3) ? nil : content(&random))
        }
        let marks = (0..<random.below(3)).map { _ in mark(&random) }
        let heads = (0..<random.below(3)).map { _ in hash(&random) }
        return BatchContent(
            notes: BatchNotes(
                seconds: Double(random.below(1_000)), marks: marks, heads: heads, deviceName: bytes(&random, random.below(20))),
            versions: versions)
    }

    @Test("A batch's content is parsed from its encoding, and from nothing shorter or longer")
    func batchContentRoundTrip() throws {
        var random = SeededGenerator(1)
        for _ in 0..<200 {
            let content = batchContent(&random)
            let bytes = content.encoded
            #expect(try BatchContent(bytes) == content)
            #expect(throws: FormatError.malformed) { try BatchContent(bytes + [0]) }
            #expect(throws: FormatError.self) { try BatchContent(Array(bytes.dropLast(1 + random.below(bytes.count - 1)))) }
        }
    }

    @Test("A batch's frame is parsed from its encoding, and no altered byte gives the same frame")
    func frameRoundTrip() throws {
        var random = SeededGenerator(2)
        for number in 1...100 as ClosedRange<UInt64> {
            let header = BatchFrame.Header(
                circle: CircleID(identifier(&random)), log: LogID(identifier(&random)), device: DeviceID(identifier(&random)),
                lane: random.chance(0.5) ? .whenUnlocked : .afterFirstUnlock, number: number,
                previous: number == 1 ? .none : hash(&random), laneKey: LaneKeyID(identifier(&random)))
            let frame = BatchFrame(
                header: header, sealed: SealedContent(wrappedKey: bytes(&random, 40), ciphertext: bytes(&random, random.below(300))),
                signature: bytes(&random, 64))
            var encoded = frame.encoded
            #expect(try BatchFrame(encoded) == frame)
            encoded[random.below(encoded.count)] ^= 1
            #expect((try? BatchFrame(encoded)) != frame)
        }
    }

    @Test("Statements of every kind are parsed from their encodings")
    func statementRoundTrip() throws {
        var random = SeededGenerator(3)
        let keys = FakeDeviceKeys(seed: [1])
        let author = DeviceID(of: keys.publicKeys, role: .owner, cipher: cipher)
        let circle = CircleID(identifier(&random))
        let bodies: [Statement.Body] = [
            .found(.init(nonce: bytes(&random, 32), keys: keys.publicKeys)),
            .admit(
                .init(
                    device: DeviceID(of: keys.publicKeys, role: .reader, cipher: cipher), keys: keys.publicKeys, role: .reader,
                    circleCode: nil)),
            .admit(
                .init(
                    device: DeviceID(of: keys.publicKeys, role: .recoveryKit, cipher: cipher), keys: keys.publicKeys, role: .recoveryKit,
                    circleCode: bytes(&random, 32))),
            .remove(.init(device: author, checkpoints: [hash(&random)])),
            .rekey(
                .init(
                    lane: .whenUnlocked, generation: 7, key: LaneKeyID(identifier(&random)),
                    boxes: [.init(device: author, bytes: bytes(&random, 80))],
                    olderKeys: [.init(key: LaneKeyID(identifier(&random)), bytes: bytes(&random, 40))])),
            .witness,
        ]
        for body in bodies {
            var isFounding = false
            if case .found = body { isFounding = true }
            let statement = try Statement(
                body, circle: isFounding ? nil : circle, author: author, heads: isFounding ? [] : [hash(&random)], keys: keys,
                cipher: cipher)
            #expect(try Statement(statement.encoded, cipher: cipher) == statement)
            #expect(throws: FormatError.malformed) { try Statement(statement.encoded + [0], cipher: cipher) }
        }
    }

    @Test("Checkpoints and pieces are parsed from their encodings")
    func checkpointRoundTrip() throws {
        var random = SeededGenerator(4)
        for _ in 0..<50 {
            let covered = (0..<random.below(5)).flatMap { _ in
                let (log, device) = (LogID(identifier(&random)), DeviceID(identifier(&random)))
                let first = 1 + random.next() >> 1
                return (0...UInt64(random.below(4))).map {
                    PieceContent.CoveredBatch(log: log, device: device, number: first + $0, hash: hash(&random))
                }
            }
            let marks = (0..<random.below(3)).map { _ in mark(&random) }
            let references = (0..<random.below(5)).map { _ in reference(&random) }
            let versions = (0..<random.below(5)).map { _ in
                PieceContent.CheckpointVersion(reference: reference(&random), content: content(&random))
            }
            for piece in [PieceContent.coverage(covered, marks), .awaited(references), .versions(versions)] {
                #expect(try PieceContent(piece.kind, piece.encoded) == piece)
                #expect(throws: FormatError.malformed) { try PieceContent(piece.kind, piece.encoded + [0]) }
            }
            let manifest = CheckpointManifest(
                circle: CircleID(identifier(&random)), author: DeviceID(identifier(&random)), laneKey: LaneKeyID(identifier(&random)),
                sealed: SealedContent(wrappedKey: bytes(&random, 40), ciphertext: bytes(&random, 50)), signature: bytes(&random, 64))
            #expect(try CheckpointManifest(manifest.encoded) == manifest)
        }
    }

    @Test("The messages of joining are parsed from their encodings, and both sides compute one number")
    func joinMessages() throws {
        var random = SeededGenerator(8)
        let keys = FakeDeviceKeys(seed: [1]).publicKeys
        let nonce = bytes(&random, 32)
        let offer = JoinMessage.Offer(
            circle: CircleID(identifier(&random)), approver: DeviceID(identifier(&random)), commitment: cipher.hash(nonce))
        let request = JoinMessage.Request(
            offer: cipher.hash(JoinMessage.offer(offer).encoded), keys: keys, nonce: bytes(&random, 32), deviceName: Array("eagle-5".utf8))
        let answer = JoinMessage.Answer(
            approver: keys, founding: [1], admission: [2, 3], marks: [mark(&random)], checkpoint: hash(&random),
            signature: bytes(&random, 64))
        let messages: [JoinMessage] = [
            .offer(offer), .request(request), .reveal(nonce: nonce, request: hash(&random)), .answer(answer), .end(request: hash(&random)),
        ]
        for message in messages {
            #expect(try JoinMessage(kind: message.kind, message.encoded) == message)
            #expect(throws: FormatError.malformed) { try JoinMessage(kind: message.kind, message.encoded + [0]) }
        }
        let number = JoinMessage.number(offer: offer, request: request, nonce: nonce, cipher: cipher)
        let other = JoinMessage.Request(offer: request.offer, keys: keys, nonce: bytes(&random, 32), deviceName: request.deviceName)
        #expect(number < 100_000_000)
        // Another request, which storage would have to choose before it knows the nonce, gives another number.
        #expect(number != JoinMessage.number(offer: offer, request: other, nonce: nonce, cipher: cipher))
    }

    @Test("Object names are parsed from their texts, and other names are foreign")
    func objectNames() {
        var random = SeededGenerator(5)
        for _ in 0..<100 {
            let names: [ObjectName] = [
                .statement(hash(&random)), .checkpoint(hash(&random)), .piece(hash(&random)),
                .batch(
                    device: DeviceID(identifier(&random)),
                    origin: Origin(log: LogID(identifier(&random)), number: 1 + random.next() >> 1, hash: identifier(&random))),
                .joinMessage(InvitationID(identifier(&random)), hash(&random)),
            ]
            for name in names {
                #expect(ObjectName(name.text) == name)
                #expect(ObjectName(name.text + "0") == nil)
                #expect(ObjectName(name.text.uppercased()) == nil)
            }
        }
        for foreign in ["", "/", "m/", "b/desktop.ini", "m/.stversions", "c/" + String(repeating: "z", count: 64)] {
            #expect(ObjectName(foreign) == nil)
        }
    }

    @Test("A date that is not finite makes a batch invalid (M7)", arguments: [Double.nan, .infinity, -.infinity])
    func notFinite(date: Double) {
        let content = BatchContent(notes: BatchNotes(seconds: date), versions: [])
        #expect(throws: FormatError.malformed) { try BatchContent(content.encoded) }
    }

    @Test("An unknown flag of a version is of a newer format, and so is a higher version number")
    func newerFormats() throws {
        var random = SeededGenerator(6)
        let record = VersionRecord(id: SyncVersionID(identifier(&random)), replaced: [], content: nil)
        var bytes = BatchContent(notes: BatchNotes(seconds: 0), versions: [record]).encoded
        bytes[bytes.count - 3] = 2
        #expect(throws: FormatError.newer) { try BatchContent(bytes) }
        bytes[0] = 2
        #expect(throws: FormatError.newer) { try BatchContent(bytes) }
    }

    @Test("Random bytes are refused, and a count larger than the rest is refused before anything is allocated")
    func hostileInput() {
        var random = SeededGenerator(7)
        for _ in 0..<2_000 {
            let junk = [1] + bytes(&random, random.below(200))
            #expect((try? BatchContent(junk)) == nil || junk.count > 16)
            _ = try? PieceContent(.coverage, junk)
            _ = try? PieceContent(.versions, junk)
            _ = try? PieceContent(.awaited, junk)
            _ = try? CheckpointContent(junk)
            _ = try? Statement(Array("KSST".utf8) + junk, cipher: cipher)
            _ = try? BatchFrame(Array("KSBT".utf8) + junk)
        }
        #expect(throws: FormatError.malformed) { try PieceContent(.coverage, [1, 255, 255, 255, 255]) }
        // A run may end with the highest number, and not go beyond.
        for (first, count, isComplete) in [(UInt64.max, UInt8(1), true), (.max - 1, 2, true), (.max, 2, false)] {
            var run = [1, 1, 0, 0, 0] + [UInt8](repeating: 7, count: 32)
            run.append(littleEndian: first)
            run += [count, 0, 0, 0] + [UInt8](repeating: 7, count: 32 * Int(count)) + [0, 0]
            #expect((try? PieceContent(.coverage, run))?.encoded == (isComplete ? run : nil))
        }
    }
}
