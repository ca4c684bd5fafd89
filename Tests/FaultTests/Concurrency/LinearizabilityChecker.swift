// SPDX-License-Identifier: Apache-2.0
import KeychainTestSupport

/// Whether the answers that many callers got at once could have come from one caller after another.
///
/// Each call must have taken effect at one moment between its start and its end. The check goes through the starts and ends in their order
/// and keeps every state that the key may be in, with the calls under way that would have taken effect by then.
///
/// Source: Lowe, "Testing for linearizability", section on just-in-time linearization.
struct LinearizabilityChecker {
    /// Why a history is not one of a single caller.
    struct Violation: Error, CustomStringConvertible {
        /// The call that no order explains.
        let operation: RecordedOperation
        /// What the key may have held when it ended, by all other answers; nil is nothing.
        let possibleValues: Set<Int?>

        var description: String { "\(operation) fits none of what the key may have held: \(possibleValues)" }
    }

    private struct Configuration: Hashable {
        /// Nil: no value.
        var value: Int?
        /// The calls under way that have taken effect.
        var effective: Set<Int>
    }

    private let operations: [RecordedOperation]
    private var underWay: Set<Int> = []
    private var configurations: Set<Configuration> = [Configuration(value: nil, effective: [])]

    /// Checks the operations of all keys, each key by itself.
    ///
    /// A failed call changed nothing and tells nothing; it is not looked at.
    static func check(_ operations: [RecordedOperation]) throws(Violation) {
        for (_, ofKey) in Dictionary(grouping: operations, by: \.key).sorted(by: { $0.key < $1.key }) {
            var checker = LinearizabilityChecker(
                operations: ofKey.filter { if case .failed = $0.answer { false } else { true } })
            try checker.run()
        }
    }

    private init(operations: [RecordedOperation]) {
        self.operations = operations
    }

    private mutating func run() throws(Violation) {
        // At the same moment starts come first: such calls overlap.
        let events =
            (operations.indices.map { (nanoseconds: operations[$0].startNanoseconds, isEnd: false, index: $0) }
            + operations.indices.map { (nanoseconds: operations[$0].endNanoseconds, isEnd: true, index: $0) })
            .sorted { ($0.nanoseconds, $0.isEnd ? 1 : 0, $0.index) < ($1.nanoseconds, $1.isEnd ? 1 : 0, $1.index) }
        for event in events {
            if event.isEnd { try end(event.index) } else { underWay.insert(event.index) }
        }
    }

    /// Keeps what is possible once this call has had its effect.
    private mutating func end(_ index: Int) throws(Violation) {
        var reached: Set<Configuration> = []
        var seen = configurations
        var open = Array(configurations)
        while let configuration = open.popLast() {
            if configuration.effective.contains(index) {
                reached.insert(configuration)
                continue
            }
            for next in underWay where !configuration.effective.contains(next) {
                guard let value = Self.effect(of: operations[next], on: configuration.value) else { continue }
                let successor = Configuration(value: value, effective: configuration.effective.union([next]))
                if seen.insert(successor).inserted { open.append(successor) }
            }
        }
        guard !reached.isEmpty else {
            throw Violation(operation: operations[index], possibleValues: Set(configurations.map(\.value)))
        }
        underWay.remove(index)
        configurations = Set(reached.map { Configuration(value: $0.value, effective: $0.effective.subtracting([index])) })
    }

    /// What the key holds after a call that got its answer; nil if it could not have got that answer.
    private static func effect(of operation: RecordedOperation, on value: Int?) -> Int?? {
        switch (operation.verb, operation.answer) {
        case (.set, .done): .some(operation.written)
        case (.add, .done): value == nil ? .some(operation.written) : nil
        case (.add, .duplicate): value != nil ? .some(value) : nil
        case (.update, .done): value != nil ? .some(operation.written) : nil
        case (.update, .notFound), (.read, .notFound): value == nil ? .some(nil) : nil
        case (.read, .value(let read)): value == read ? .some(value) : nil
        // Valet removes without asking whether there is something; SecItemDelete tells.
        case (.remove, .done): operation.key.hasPrefix("valet") || value != nil ? .some(nil) : nil
        case (.remove, .notFound): value == nil ? .some(nil) : nil
        default: nil
        }
    }
}
