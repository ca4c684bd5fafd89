// SPDX-License-Identifier: Apache-2.0

/// A set of numbers below a limit.
struct NumberSet {
    private var words: [UInt64]

    init(count: Int) { words = Array(repeating: 0, count: (count + 63) / 64) }

    mutating func insert(_ number: Int) { words[number >> 6] |= 1 << UInt64(number & 63) }

    func contains(_ number: Int) -> Bool { words[number >> 6] & 1 << UInt64(number & 63) != 0 }

    mutating func formUnion(_ other: NumberSet) {
        for index in words.indices { words[index] |= other.words[index] }
    }

    /// Adds the numbers that are in both of two other sets.
    mutating func formUnion(_ one: NumberSet, and other: NumberSet) {
        for index in words.indices { words[index] |= one.words[index] & other.words[index] }
    }

    mutating func formIntersection(_ other: NumberSet) {
        for index in words.indices { words[index] &= other.words[index] }
    }

    /// Calls `body` with each number that is in this set and in none of the others, in ascending order.
    func forEach(notIn first: NumberSet, _ second: NumberSet, _ body: (Int) -> Void) {
        for index in words.indices {
            var word = words[index] & ~first.words[index] & ~second.words[index]
            while word != 0 {
                body(index << 6 + word.trailingZeroBitCount)
                word &= word - 1
            }
        }
    }
}
