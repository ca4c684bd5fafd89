// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The signed list of a checkpoint's pieces.
///
///     "KSCP" ‖ version (1) ‖ circle (16) ‖ author (16) ‖ lane key id (16) ‖ wrapped key (40) ‖ counted ciphertext ‖ signature (64)
///     content = version (1) ‖ date (8) ‖ count (2) ‖ pieces (kind (1) ‖ hash (32))
package struct CheckpointManifest: Hashable, Sendable {
    package let circle: CircleID
    package let author: DeviceID
    package let laneKey: LaneKeyID
    package let sealed: SealedContent
    package let signature: [UInt8]

    package static let largestByteCount = 4_194_304
    private static let version: UInt8 = 1

    package init(circle: CircleID, author: DeviceID, laneKey: LaneKeyID, sealed: SealedContent, signature: [UInt8]) {
        self.circle = circle
        self.author = author
        self.laneKey = laneKey
        self.sealed = sealed
        self.signature = signature
    }

    package static func header(circle: CircleID, author: DeviceID, laneKey: LaneKeyID) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append("KSCP")
        bytes.append(version)
        bytes.append(circle)
        bytes.append(author)
        bytes.append(laneKey)
        return bytes
    }

    package var header: [UInt8] { Self.header(circle: circle, author: author, laneKey: laneKey) }

    package var unsignedBytes: [UInt8] {
        var bytes = header + sealed.wrappedKey
        bytes.append(lengthPrefixed: sealed.ciphertext)
        return bytes
    }

    package var encoded: [UInt8] { unsignedBytes + signature }

    package static func signedMessage(circle: CircleID, hash: CheckpointHash) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append("keychain sync checkpoint v1")
        bytes.append(circle)
        bytes.append(hash)
        return bytes
    }

    package init(_ bytes: [UInt8]) throws(FormatError) {
        guard bytes.count <= Self.largestByteCount else { throw .malformed }
        var reader = FieldReader(bytes)
        try reader.header("KSCP", version: Self.version)
        circle = CircleID(try reader.identifier())
        author = DeviceID(try reader.identifier())
        laneKey = LaneKeyID(try reader.identifier())
        let wrappedKey = try reader.bytes(SealedContent.wrappedKeyByteCount)
        sealed = SealedContent(wrappedKey: wrappedKey, ciphertext: try reader.counted(atMost: Self.largestByteCount))
        signature = try reader.bytes(LogMark.signatureByteCount)
        try reader.end()
    }
}

/// The sealed part of a manifest.
package struct CheckpointContent: Hashable, Sendable {
    /// When the checkpoint was made, by the author's clock.
    ///
    /// It only decides which of several is read first.
    package let seconds: Double
    package let pieces: [Piece]

    static let largestPieceCount = Int(UInt16.max)

    package struct Piece: Hashable, Sendable {
        package let kind: CheckpointPiece.Kind
        package let hash: ObjectHash

        package init(kind: CheckpointPiece.Kind, hash: ObjectHash) {
            self.kind = kind
            self.hash = hash
        }
    }

    package init(seconds: Double, pieces: [Piece]) {
        self.seconds = seconds
        self.pieces = pieces
    }

    package var encoded: [UInt8] {
        var bytes: [UInt8] = [1]
        bytes.append(seconds: seconds)
        bytes.append(count: pieces.count)
        for piece in pieces {
            bytes.append(piece.kind.rawValue)
            bytes.append(piece.hash)
        }
        return bytes
    }

    package init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(1)
        seconds = try reader.seconds()
        var pieces: [Piece] = []
        for _ in 0..<(try reader.count(ofElementsOf: 33, atMost: Self.largestPieceCount)) {
            guard let kind = CheckpointPiece.Kind(rawValue: try reader.byte()) else { throw .newer }
            pieces.append(Piece(kind: kind, hash: try reader.hash()))
        }
        try reader.end()
        guard Set(pieces.map(\.hash)).count == pieces.count else { throw .malformed }
        self.pieces = pieces
    }
}

/// A part of a checkpoint, named by the hash of its bytes.
///
///     "KSPC" ‖ version (1) ‖ circle (16) ‖ lane (1) ‖ kind (1) ‖ lane key id (16) ‖ wrapped key (40) ‖ ciphertext
package struct CheckpointPiece: Hashable, Sendable {
    package let circle: CircleID
    package let lane: Lane
    package let kind: Kind
    package let laneKey: LaneKeyID
    package let sealed: SealedContent

    package static let largestByteCount = BatchFrame.largestByteCount

    package enum Kind: UInt8, Sendable {
        /// The hashes of the batches that the checkpoint covers, and marks.
        case coverage = 1
        case awaited = 2
        /// Live versions of one lane.
        case versions = 3
    }

    package init(circle: CircleID, lane: Lane, kind: Kind, laneKey: LaneKeyID, sealed: SealedContent) {
        self.circle = circle
        self.lane = lane
        self.kind = kind
        self.laneKey = laneKey
        self.sealed = sealed
    }

    package static func header(circle: CircleID, lane: Lane, kind: Kind, laneKey: LaneKeyID) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append("KSPC")
        bytes.append(UInt8(1))
        bytes.append(circle)
        bytes.append(lane.rawValue)
        bytes.append(kind.rawValue)
        bytes.append(laneKey)
        return bytes
    }

    package var header: [UInt8] { Self.header(circle: circle, lane: lane, kind: kind, laneKey: laneKey) }

    package var encoded: [UInt8] { header + sealed.wrappedKey + sealed.ciphertext }

    package init(_ bytes: [UInt8]) throws(FormatError) {
        guard bytes.count <= Self.largestByteCount else { throw .malformed }
        var reader = FieldReader(bytes)
        try reader.header("KSPC", version: 1)
        circle = CircleID(try reader.identifier())
        guard let lane = Lane(rawValue: try reader.byte()) else { throw .malformed }
        guard let kind = Kind(rawValue: try reader.byte()) else { throw .newer }
        self.lane = lane
        self.kind = kind
        laneKey = LaneKeyID(try reader.identifier())
        let wrappedKey = try reader.bytes(SealedContent.wrappedKeyByteCount)
        sealed = SealedContent(wrappedKey: wrappedKey, ciphertext: try reader.bytes(reader.remaining))
    }
}

/// The sealed part of a piece.
///
///     coverage = version (1) ‖ count (4) ‖ runs ‖ marks
///     run      = log (16) ‖ device (16) ‖ number (8) ‖ count (4) ‖ hashes (32), of batches with successive numbers
///     awaited  = version (1) ‖ log table ‖ count (4) ‖ references (42)
///     versions = version (1) ‖ log table ‖ count (4) ‖ versions (log index (2) ‖ number (8) ‖ hash (16) ‖ id (16) ‖ content)
package enum PieceContent: Hashable, Sendable {
    case coverage([CoveredBatch], [LogMark])
    case awaited([VersionReference])
    case versions([CheckpointVersion])

    package struct CoveredBatch: Hashable, Sendable {
        package let log: LogID
        package let device: DeviceID
        package let number: UInt64
        package let hash: BatchHash

        package init(log: LogID, device: DeviceID, number: UInt64, hash: BatchHash) {
            self.log = log
            self.device = device
            self.number = number
            self.hash = hash
        }

        package var origin: Origin { Origin(log: log, number: number, hash: hash.prefix) }
        /// The number of bytes of a batch that is alone in its run; the others take 32.
        static let largestByteCount = 76

        fileprivate func follows(_ other: CoveredBatch) -> Bool {
            log == other.log && device == other.device && number > 0 && number - 1 == other.number
        }
    }

    package struct CheckpointVersion: Hashable, Sendable {
        package let reference: VersionReference
        package let content: SyncContent

        package init(reference: VersionReference, content: SyncContent) {
            self.reference = reference
            self.content = content
        }
    }

    package var kind: CheckpointPiece.Kind {
        switch self {
        case .coverage: .coverage
        case .awaited: .awaited
        case .versions: .versions
        }
    }

    package var encoded: [UInt8] {
        var bytes: [UInt8] = [1]
        switch self {
        case .coverage(let batches, let marks):
            let starts = batches.indices.filter { $0 == 0 || !batches[$0].follows(batches[$0 - 1]) }
            bytes.append(littleEndian: UInt32(starts.count))
            for (start, end) in zip(starts, starts.dropFirst() + [batches.count]) {
                bytes.append(batches[start].log)
                bytes.append(batches[start].device)
                bytes.append(littleEndian: batches[start].number)
                bytes.append(littleEndian: UInt32(end - start))
                for batch in batches[start..<end] { bytes.append(batch.hash) }
            }
            bytes.append(marks: marks)
        case .awaited(let references):
            let logs = LogTable(references.compactMap(\.origin?.log))
            logs.append(to: &bytes)
            bytes.append(littleEndian: UInt32(references.count))
            for reference in references { Self.append(reference, to: &bytes, logs) }
        case .versions(let versions):
            let logs = LogTable(versions.compactMap(\.reference.origin?.log))
            logs.append(to: &bytes)
            bytes.append(littleEndian: UInt32(versions.count))
            for version in versions {
                Self.append(version.reference, to: &bytes, logs)
                version.content.append(to: &bytes)
            }
        }
        return bytes
    }

    private static func append(_ reference: VersionReference, to bytes: inout [UInt8], _ logs: LogTable) {
        guard let origin = reference.origin else { return }
        logs.append(origin, to: &bytes)
        bytes.append(reference.id)
    }

    package init(_ kind: CheckpointPiece.Kind, _ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(1)
        switch kind {
        case .coverage:
            var batches: [CoveredBatch] = []
            for _ in 0..<(try reader.longCount(ofElementsOf: CoveredBatch.largestByteCount)) {
                let log = LogID(try reader.identifier())
                let device = DeviceID(try reader.identifier())
                let first = try reader.uint64()
                let count = UInt64(try reader.longCount(ofElementsOf: 32))
                guard first > 0, count > 0, count - 1 <= .max - first else { throw .malformed }
                for number in first...first + (count - 1) {
                    batches.append(CoveredBatch(log: log, device: device, number: number, hash: try reader.hash()))
                }
            }
            self = .coverage(batches, try reader.marks(atMost: Int(UInt16.max)))
        case .awaited:
            let logs = try LogTable(from: &reader)
            var references: [VersionReference] = []
            for _ in 0..<(try reader.longCount(ofElementsOf: 42)) { references.append(try reader.reference(logs)) }
            self = .awaited(references)
        case .versions:
            let logs = try LogTable(from: &reader)
            var versions: [CheckpointVersion] = []
            for _ in 0..<(try reader.longCount(ofElementsOf: 53)) {
                versions.append(CheckpointVersion(reference: try reader.reference(logs), content: try SyncContent(from: &reader)))
            }
            self = .versions(versions)
        }
        try reader.end()
    }
}

extension FieldReader {
    /// Reads a 32-bit count of elements, each of at least `byteCount` bytes.
    mutating func longCount(ofElementsOf byteCount: Int) throws(FormatError) -> Int {
        let count = Int(try uint32())
        guard count <= remaining / byteCount else { throw .malformed }
        return count
    }

    mutating func reference(_ logs: LogTable) throws(FormatError) -> VersionReference {
        let origin = try logs.origin(from: &self)
        return VersionReference(id: SyncVersionID(try identifier()), origin: origin)
    }
}
