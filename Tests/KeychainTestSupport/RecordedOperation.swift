// SPDX-License-Identifier: Apache-2.0

/// One call of a history: the operation on a key, its times, and its answer.
///
/// Every value is written only once, so that it identifies the call that wrote it.
package struct HistoryEntry: Equatable, Sendable {
    package enum Verb: String, Sendable, CaseIterable {
        /// Stores a value whether or not there is one.
        case set
        /// Stores a value if there is none.
        case add
        /// Replaces an existing value.
        case update
        case read, remove
    }

    package enum Answer: Equatable, Sendable {
        case done
        /// The value that was read.
        case value(Int)
        case notFound
        case duplicate
        /// Any other status.
        case failed(Int32)
    }

    package let key: String
    package let verb: Verb
    /// The value that is written; 0 for verbs that write nothing.
    package let written: Int
    package let answer: Answer
    package let startNanoseconds: UInt64
    package let endNanoseconds: UInt64

    package init(key: String, verb: Verb, written: Int = 0, answer: Answer, startNanoseconds: UInt64, endNanoseconds: UInt64) {
        self.key = key
        self.verb = verb
        self.written = written
        self.answer = answer
        self.startNanoseconds = startNanoseconds
        self.endNanoseconds = endNanoseconds
    }
}

/// A line of a child's output; keys contain no spaces.
extension HistoryEntry: LosslessStringConvertible {
    package var description: String {
        let answer =
            switch answer {
            case .done: "done"
            case .value(let value): "value:\(value)"
            case .notFound: "notFound"
            case .duplicate: "duplicate"
            case .failed(let status): "failed:\(status)"
            }
        return "\(key) \(verb.rawValue) \(written) \(answer) \(startNanoseconds) \(endNanoseconds)"
    }

    package init?(_ line: String) {
        let words = line.split(separator: " ").map(String.init)
        guard words.count == 6, let verb = Verb(rawValue: words[1]), let written = Int(words[2]), let answer = Answer(words[3]),
            let start = UInt64(words[4]), let end = UInt64(words[5])
        else { return nil }
        self.init(key: words[0], verb: verb, written: written, answer: answer, startNanoseconds: start, endNanoseconds: end)
    }
}

extension HistoryEntry.Answer {
    fileprivate init?(_ word: String) {
        let parts = word.split(separator: ":")
        let number = parts.count == 2 ? Int(parts[1]) : nil
        switch (parts.first, number) {
        case ("done", nil): self = .done
        case ("notFound", nil): self = .notFound
        case ("duplicate", nil): self = .duplicate
        case ("value", let number?): self = .value(number)
        case ("failed", let number?): self = .failed(Int32(truncatingIfNeeded: number))
        default: return nil
        }
    }
}

/// SplitMix64: a random generator with a seed, so that a failure can be reproduced.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
