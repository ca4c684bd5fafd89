// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The secrets of a source, each with a key of its own, in the order in which they were added.
///
/// There may be a million. Their keys and values lie in one buffer, and each secret takes a few bytes besides.
struct SecretList: RandomAccessCollection {
    /// Where the buffer has a secret: its key, followed by its value.
    struct Entry {
        fileprivate let start: UInt32
        fileprivate let keyByteCount: UInt32
        fileprivate let valueByteCount: UInt32
        /// The number of a line, or the complement of an index in `places`.
        fileprivate let place: Int32

        /// Returns nil if the buffer is too large.
        fileprivate init?(_ key: Range<Int>, valueByteCount: Int, place: Int) {
            guard key.upperBound <= UInt32.max, let count = UInt32(exactly: valueByteCount), let place = Int32(exactly: place) else {
                return nil
            }
            (start, keyByteCount) = (UInt32(key.lowerBound), UInt32(key.count))
            self.valueByteCount = count
            self.place = place
        }

        /// An entry in the text of a file, in which the value of `valueByteCount` bytes follows the key.
        ///
        /// Returns nil if the text has more than 2 GiB.
        init?(_ key: Range<Int>, valueByteCount: Int, line: Int) {
            self.init(key, valueByteCount: valueByteCount, place: line)
        }

        fileprivate var key: Range<Int> { Int(start)..<Int(start) + Int(keyByteCount) }
        fileprivate var value: Range<Int> { key.upperBound..<key.upperBound + Int(valueByteCount) }
    }

    private var bytes: [UInt8]
    private var places: [String] = []
    private var entries: [Entry] = []
    /// The index of each secret by a hash of its key, or by the next number that no other secret has.
    private var indices: [UInt32: UInt32] = [:]

    /// Creates an empty list, whose buffer has the secrets that will be added as entries.
    init(_ bytes: [UInt8] = []) {
        self.bytes = bytes
    }

    var startIndex: Int { 0 }
    var endIndex: Int { entries.count }

    subscript(index: Int) -> FoundSecret { secret(entries[index]) }

    /// The key of the secret at an index, without a copy of the secret.
    func key(at index: Int) -> String { String(decoding: bytes[entries[index].key], as: UTF8.self) }

    func secret(_ entry: Entry) -> FoundSecret {
        FoundSecret(
            key: String(decoding: bytes[entry.key], as: UTF8.self), value: Data(bytes[entry.value]),
            place: entry.place < 0 ? places[Int(~entry.place)] : "line \(entry.place)")
    }

    /// Copies a secret into the buffer, without adding it.
    ///
    /// Returns nil if there is no room.
    mutating func copy(_ secret: FoundSecret) -> Entry? {
        let start = bytes.count
        bytes += secret.key.utf8
        guard let entry = Entry(start..<bytes.count, valueByteCount: secret.value.count, place: ~places.count) else { return nil }
        bytes += secret.value
        places.append(secret.place)
        return entry
    }

    /// Adds a secret of the buffer, unless there is one with the same key, whose index is returned.
    mutating func add(_ entry: Entry) -> Int? {
        let key = bytes[entry.key]
        var hasher = Hasher()
        hasher.combine(key)
        var hash = UInt32(truncatingIfNeeded: hasher.finalize())
        while let index = indices[hash].map(Int.init) {
            if bytes[entries[index].key].elementsEqual(key) { return index }
            hash &+= 1
        }
        indices[hash] = UInt32(entries.count)
        entries.append(entry)
        return nil
    }

    /// Removes the secrets at indices for which `isRemoved` is true.
    mutating func removeAll(where isRemoved: (Int) -> Bool) {
        let kept = entries.indices.filter { !isRemoved($0) }.map { entries[$0] }
        (entries, indices) = ([], [:])
        for entry in kept { _ = add(entry) }
    }
}
