// SPDX-License-Identifier: Apache-2.0

/// Identifies the content of a keychain: two different contents have different versions.
package struct ContentVersion: Hashable, Sendable {
    private let change: Identifier128
    package let lockEpoch: LockEpoch
    private let syncEngine: [UInt8]?

    /// - Parameters:
    ///   - change: Random, new for each committed change of items.
    ///   - lockEpoch: Advances with each lock.
    ///   - syncEngine: The engine of synchronization that has made the last step, if any. Another one does what a person has asked another process for,
    ///     and a running agent then has something to send.
    package init(change: Identifier128, lockEpoch: LockEpoch, syncEngine: [UInt8]?) {
        self.change = change
        self.lockEpoch = lockEpoch
        self.syncEngine = syncEngine
    }
}

/// The state of a store after a committed transaction: how often it was changed, and which rows and which keybag it contains.
///
/// It is stored in the transaction itself, sealed by a `StateCipher`. A store whose content does not match its state was altered by another
/// program.
package struct StoreState: Hashable, Sendable {
    /// Increases by one with each transaction that changes rows or the keybag.
    ///
    /// The upper 32 bits are the series: see `changeCount(_:replacing:)`.
    package var changeCount: UInt64
    /// Random, new for each transaction: two states with the same change count and different identifiers have different histories.
    package var id: Identifier128
    /// The number of rows, including tombstones, without the quarantine.
    package var rowCount: UInt64
    /// The sum of the elements of all row tags.
    ///
    /// An element is a keyed digest (`StateCipher.element(ofRowTag:)`), so no set of rows with the same sum can be computed without the key.
    package var rowSum: UInt256
    /// The keyed digest of the keybag.
    package var keybagDigest: UInt256

    package init(changeCount: UInt64, id: Identifier128, rowCount: UInt64, rowSum: UInt256, keybagDigest: UInt256) {
        self.changeCount = changeCount
        self.id = id
        self.rowCount = rowCount
        self.rowSum = rowSum
        self.keybagDigest = keybagDigest
    }

    /// The state of a new store, which has no rows.
    package static func initial(keybagDigest: UInt256) -> StoreState {
        StoreState(changeCount: 1, id: .random(), rowCount: 0, rowSum: UInt256(), keybagDigest: keybagDigest)
    }

    /// Returns the change count of a content that a person puts in the place of the store's, in a new series.
    ///
    /// It is greater than every count that the replaced content can have reached, including changes that are not in `known` yet.
    ///
    /// - Parameters:
    ///   - count: The change count of the new content.
    ///   - known: The greatest change count that is known of the replaced content.
    /// - Returns: The count, whose lower 32 bits are those of `count`.
    package static func changeCount(_ count: UInt64, replacing known: UInt64) -> UInt64 {
        let series = min(max(count, known) >> 32, UInt64(UInt32.max) - 1) + 1
        return series << 32 | changes(in: count)
    }

    /// The number of changes in a change count, without its series.
    package static func changes(in changeCount: UInt64) -> UInt64 { changeCount & UInt64(UInt32.max) }

    /// Adds a row with this element.
    package mutating func insertRow(_ element: UInt256) {
        rowCount &+= 1
        rowSum = rowSum &+ element
    }

    /// Removes a row with this element.
    package mutating func removeRow(_ element: UInt256) {
        rowCount &-= 1
        rowSum = rowSum &- element
    }

    /// Whether this state has the same rows as `other`.
    package func hasSameRows(as other: StoreState) -> Bool { rowCount == other.rowCount && rowSum == other.rowSum }
}

/// An unsigned number of 256 bits, with arithmetic modulo 2^256.
package struct UInt256: Hashable, Sendable {
    /// The least significant word first.
    private var words: (UInt64, UInt64, UInt64, UInt64)

    package static let byteCount = 32

    /// Creates zero.
    package init() { words = (0, 0, 0, 0) }

    /// Reads 32 bytes, the least significant first; nil for any other number of bytes.
    package init?(buffer: UnsafeRawBufferPointer) {
        guard buffer.count == Self.byteCount else { return nil }
        // The count is checked above; loadUnaligned has no alignment rule.
        words = unsafe (
            UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
            UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
            UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: 16, as: UInt64.self)),
            UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: 24, as: UInt64.self))
        )
    }

    package var leastSignificantWord: UInt64 { words.0 }

    package static func == (left: UInt256, right: UInt256) -> Bool {
        left.words.0 == right.words.0 && left.words.1 == right.words.1 && left.words.2 == right.words.2 && left.words.3 == right.words.3
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }

    package static func &+ (left: UInt256, right: UInt256) -> UInt256 {
        var result = UInt256()
        var carry: UInt64 = 0
        (result.words.0, carry) = sum(left.words.0, right.words.0, carry)
        (result.words.1, carry) = sum(left.words.1, right.words.1, carry)
        (result.words.2, carry) = sum(left.words.2, right.words.2, carry)
        (result.words.3, _) = sum(left.words.3, right.words.3, carry)
        return result
    }

    package static func &- (left: UInt256, right: UInt256) -> UInt256 {
        // The two's complement: -x is ~x + 1.
        var one = UInt256()
        one.words.0 = 1
        var complement = UInt256()
        complement.words = (~right.words.0, ~right.words.1, ~right.words.2, ~right.words.3)
        return left &+ complement &+ one
    }

    private static func sum(_ left: UInt64, _ right: UInt64, _ carry: UInt64) -> (UInt64, carry: UInt64) {
        let (first, overflow) = left.addingReportingOverflow(right)
        let (second, carryOverflow) = first.addingReportingOverflow(carry)
        return (second, overflow || carryOverflow ? 1 : 0)
    }
}

extension [UInt8] {
    /// Appends the 32 bytes of the number, the least significant first.
    package mutating func append(littleEndian number: UInt256) {
        append(littleEndian: number.word(0))
        append(littleEndian: number.word(1))
        append(littleEndian: number.word(2))
        append(littleEndian: number.word(3))
    }
}

extension UInt256 {
    fileprivate func word(_ index: Int) -> UInt64 {
        switch index {
        case 0: words.0
        case 1: words.1
        case 2: words.2
        default: words.3
        }
    }
}

extension ByteReader {
    package mutating func readUInt256() -> UInt256? {
        guard let bytes = readBytes(UInt256.byteCount) else { return nil }
        return unsafe bytes.withUnsafeBytes { unsafe UInt256(buffer: $0) }
    }
}

/// What is wrong with the content of a store, compared with its own state and with the anchor outside of its file.
package enum StateProblem: Hashable, Sendable, CustomStringConvertible {
    /// The state in the file is missing, or was not written with this keychain's keys.
    case unauthentic
    /// The file is older than the last change that is known.
    case rolledBack(missingChangeCount: UInt64)
    /// The file is from before the content was last restored or accepted.
    case superseded
    /// The file is the same, but its -wal file with the last changes is gone.
    case logRemoved(missingChangeCount: UInt64)
    /// The file has as many changes as were known, but other ones.
    case diverged
    /// Rows were removed, added, or put back.
    case rowsChanged(count: UInt64, expectedCount: UInt64)
    /// The file consists of parts from different moments.
    case mixed
    /// Another keybag was put into the file.
    case keybagReplaced
    /// The number beside the keybag is not its generation, so every process would take the keybag for an outdated one.
    case keybagGenerationAltered
    /// The tables and indexes are not those that the keychain created.
    case schemaAltered

    /// A phrase for people, without a final period.
    package var description: String {
        switch self {
        case .unauthentic: "its record of changes is missing, or was altered"
        case .rolledBack(let count): "an older copy of the file was put back, or its -wal file was removed: \(Self.changes(count)) missing"
        case .superseded: "a copy of the file was put back that is from before the keychain was last restored or its content accepted"
        case .logRemoved(let count): "its -wal file was removed: \(Self.changes(count)) missing"
        case .diverged: "a copy that was changed separately was put in its place"
        case .rowsChanged(let count, let expected) where count < expected: "\(Self.items(expected - count)) removed by another program"
        case .rowsChanged(let count, let expected) where count > expected: "\(Self.items(count - expected)) added by another program"
        case .rowsChanged: "older versions of items were put back, or the file and its -wal file are from different moments"
        case .mixed: "the file and its -wal file are from different moments"
        case .keybagReplaced: "an older keybag was put into the file"
        case .keybagGenerationAltered: "the generation of its keybag was altered"
        case .schemaAltered: "the definitions of its tables were altered"
        }
    }

    private static func changes(_ count: UInt64) -> String { count == 1 ? "1 change is" : "\(count) changes are" }
    private static func items(_ count: UInt64) -> String { count == 1 ? "1 item was" : "\(count) items were" }
}
