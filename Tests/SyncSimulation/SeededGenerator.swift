// SPDX-License-Identifier: Apache-2.0

/// A generator of random numbers (SplitMix64), so that a seed always gives the same run.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(_ seed: UInt64) { state = seed &+ 0x9E37_79B9_7F4A_7C15 }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mix(state)
    }

    static func mix(_ word: UInt64) -> UInt64 {
        var word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }

    /// Returns a number below `limit`.
    package mutating func below(_ limit: Int) -> Int { Int(truncatingIfNeeded: ((next() >> 32) &* UInt64(limit)) >> 32) }

    /// Returns true with this probability.
    package mutating func chance(_ probability: Double) -> Bool { Double(next() >> 11) * 0x1p-53 < probability }

    package mutating func element<Element>(of array: [Element]) -> Element? { array.isEmpty ? nil : array[below(array.count)] }

    package mutating func identifier() -> (UInt64, UInt64) { (next(), next()) }
}
