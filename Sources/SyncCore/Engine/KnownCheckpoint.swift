// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// A checkpoint whose manifest was read.
struct KnownCheckpoint {
    let author: DeviceID
    let seconds: Double
    let pieces: [CheckpointContent.Piece]
    /// The batches that it covers, from the pieces read so far.
    var coverage: Set<Origin> = []
    var batches: [PieceContent.CoveredBatch] = []
    var marks: [LogMark] = []
    /// The pieces with coverage that are not read yet.
    var unreadCoverage: Set<ObjectHash>
    /// Whether its absorption was given up, because a part of it was of no use.
    var isSetAside = false

    init(author: DeviceID, _ content: CheckpointContent) {
        self.author = author
        seconds = content.seconds
        pieces = content.pieces
        unreadCoverage = Set(content.pieces.lazy.filter { $0.kind == .coverage }.map(\.hash))
    }

    mutating func note(_ batches: [PieceContent.CoveredBatch], _ marks: [LogMark], of piece: ObjectHash) {
        guard unreadCoverage.remove(piece) != nil else { return }
        self.batches += batches
        coverage.formUnion(batches.map(\.origin))
        self.marks += marks
    }
}

/// A checkpoint that is being absorbed piece by piece.
///
/// Pieces only add. Versions that the checkpoint covers and does not contain, and those that it knows to be replaced, are removed at the end,
/// in the transaction that also takes over its coverage. Until then no batch that it covers is read. An interruption is harmless, because replaced versions are remembered.
struct Absorption {
    let hash: CheckpointHash
    private let coverage: Set<Origin>
    /// The pieces that are not applied yet.
    var remaining: Set<ObjectHash>
    /// The number of these pieces when the pieces in the storage were listed last.
    var remainingAtLastListing: Int?
    /// Whether versions were live when the absorption began, so that there may be some that the checkpoint does not contain.
    let hasOlderVersions: Bool
    /// The hashes of the versions in the pieces applied so far, of which there may be a million; empty without older versions.
    ///
    /// An array, because a set takes three times its memory while it grows.
    private var contained: [Identifier128] = []
    private var isSorted = true
    /// The replaced versions in these pieces.
    var awaited: [VersionReference] = []

    init(_ hash: CheckpointHash, _ checkpoint: KnownCheckpoint, hasOlderVersions: Bool) {
        self.hash = hash
        self.hasOlderVersions = hasOlderVersions
        coverage = checkpoint.coverage
        remaining = Set(checkpoint.pieces.lazy.filter { $0.kind != .coverage }.map(\.hash))
    }

    func covers(_ origin: Origin) -> Bool { coverage.contains(origin) }

    mutating func insert(_ reference: VersionReference, _ cipher: any CircleCipher) {
        guard hasOlderVersions else { return }
        contained.append(Self.hash(reference, cipher))
        isSorted = false
    }

    /// Makes `contains` possible, after the last `insert`.
    mutating func sortContained() {
        guard !isSorted else { return }
        contained.sort(by: Self.isOrdered)
        isSorted = true
    }

    func contains(_ reference: VersionReference, _ cipher: any CircleCipher) -> Bool {
        let hash = Self.hash(reference, cipher)
        var (low, high) = (0, contained.count)
        while low < high {
            let middle = (low + high) / 2
            if Self.isOrdered(contained[middle], before: hash) { low = middle + 1 } else { high = middle }
        }
        return low < contained.count && contained[low] == hash
    }

    private static func isOrdered(_ left: Identifier128, before right: Identifier128) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    private static func hash(_ reference: VersionReference, _ cipher: any CircleCipher) -> Identifier128 {
        cipher.hash(reference.id.bytes + StoredList.encoded([reference.origin].compactMap(\.self))).prefix
    }
}

/// The checkpoints that this device has seen in the storage, as stored in the ledger.
struct SeenCheckpoints: Equatable {
    private var entries: [CheckpointHash: Entry] = [:]
    /// The last absorption of each author's checkpoints, numbered in the order in which absorptions were begun; also of checkpoints that are gone.
    private var lastTurns: [DeviceID: UInt64] = [:]

    struct Entry: Equatable {
        let author: DeviceID
        /// When this device saw it first.
        var seconds: Double
        /// How often this device has begun to absorb it.
        var absorptionCount: UInt64 = 0
    }

    init() {}

    subscript(hash: CheckpointHash) -> Entry? { entries[hash] }

    mutating func note(_ hash: CheckpointHash, by author: DeviceID, at seconds: Double) {
        entries[hash, default: Entry(author: author, seconds: seconds)].seconds = seconds
    }

    /// Returns the checkpoints of an author.
    func hashes(by author: DeviceID) -> [CheckpointHash] { entries.filter { $0.value.author == author }.map(\.key) }

    /// Returns the number of the last absorption of a checkpoint of this author; 0 if there was none.
    func lastTurn(of author: DeviceID) -> UInt64 { lastTurns[author] ?? 0 }

    mutating func noteBeginning(of hash: CheckpointHash, by author: DeviceID, at seconds: Double) {
        entries[hash, default: Entry(author: author, seconds: seconds)].absorptionCount += 1
        lastTurns[author] = (lastTurns.values.max() ?? 0) &+ 1
    }

    mutating func keepOnly(_ hashes: [CheckpointHash]) {
        let kept = Set(hashes)
        entries = entries.filter { kept.contains($0.key) }
    }

    var encoded: [UInt8] {
        var bytes: [UInt8] = [2]
        bytes.append(count: lastTurns.count)
        for (author, turn) in lastTurns.sorted(by: { $0.key < $1.key }).prefix(Int(UInt16.max)) {
            bytes.append(author)
            bytes.append(littleEndian: turn)
        }
        for (hash, entry) in entries.sorted(by: { $0.key < $1.key }) {
            bytes.append(hash)
            bytes.append(entry.author)
            bytes.append(seconds: entry.seconds)
            bytes.append(littleEndian: entry.absorptionCount)
        }
        return bytes
    }

    init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(2)
        for _ in 0..<(try reader.count(ofElementsOf: 24)) {
            let author = DeviceID(try reader.identifier())
            lastTurns[author] = try reader.uint64()
        }
        while reader.remaining > 0 {
            let hash = try reader.hash()
            entries[hash] = Entry(
                author: DeviceID(try reader.identifier()), seconds: try reader.seconds(), absorptionCount: try reader.uint64())
        }
    }
}
