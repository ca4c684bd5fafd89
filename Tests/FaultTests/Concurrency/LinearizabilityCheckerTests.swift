// SPDX-License-Identifier: Apache-2.0
import KeychainTestSupport
import Testing

@Suite("The check of histories")
struct LinearizabilityCheckerTests {
    typealias History = [(verb: RecordedOperation.Verb, written: Int, answer: RecordedOperation.Answer, start: UInt64, end: UInt64)]

    private static func operations(_ history: History, key: String = "item") -> [RecordedOperation] {
        history.map {
            RecordedOperation(
                key: key, verb: $0.verb, written: $0.written, answer: $0.answer, startNanoseconds: $0.start, endNanoseconds: $0.end)
        }
    }

    static let possible: [History] = [
        [],
        [
            (.read, 0, .notFound, 0, 1), (.add, 1, .done, 2, 3), (.read, 0, .value(1), 4, 5), (.remove, 0, .done, 6, 7),
            (.read, 0, .notFound, 8, 9),
        ],
        // Reads that overlap a write may see either, as long as the later does not see less.
        [(.add, 1, .done, 0, 1), (.set, 2, .done, 2, 9), (.read, 0, .value(1), 3, 4), (.read, 0, .value(2), 5, 6)],
        [(.add, 1, .done, 0, 9), (.add, 2, .duplicate, 1, 8), (.update, 3, .done, 2, 7), (.read, 0, .value(3), 10, 11)],
        [(.set, 1, .done, 0, 9), (.remove, 0, .done, 0, 9), (.read, 0, .notFound, 10, 11)],
        // What failed has changed nothing.
        [(.set, 1, .done, 0, 1), (.set, 2, .failed(-25291), 2, 3), (.read, 0, .value(1), 4, 5)],
    ]

    static let impossible: [History] = [
        // A read of what was never written, of what was overwritten, and of nothing where something is.
        [(.read, 0, .value(1), 0, 1)],
        [(.set, 1, .done, 0, 1), (.set, 2, .done, 2, 3), (.read, 0, .value(1), 4, 5)],
        [(.set, 1, .done, 0, 1), (.read, 0, .notFound, 2, 3)],
        // The second reader sees less than the first did.
        [(.set, 1, .done, 0, 1), (.set, 2, .done, 2, 9), (.read, 0, .value(2), 3, 4), (.read, 0, .value(1), 5, 6)],
        // Two that were both the first, and one that lost its update.
        [(.add, 1, .done, 0, 9), (.add, 2, .done, 1, 8)],
        [(.add, 1, .done, 0, 1), (.update, 2, .done, 2, 3), (.update, 3, .done, 4, 5), (.read, 0, .value(2), 6, 7)],
        [(.add, 1, .duplicate, 0, 1)],
        [(.update, 1, .notFound, 2, 3), (.add, 2, .done, 0, 1)],
        // A value that went while it was overwritten.
        [(.set, 1, .done, 0, 1), (.set, 2, .done, 2, 9), (.read, 0, .notFound, 3, 4)],
        [(.set, 1, .done, 0, 1), (.set, 2, .failed(-25291), 2, 3), (.read, 0, .value(2), 4, 5)],
    ]

    @Test("Histories that one caller after another could have made pass", arguments: possible.indices)
    func passes(index: Int) throws {
        try LinearizabilityChecker.check(Self.operations(Self.possible[index]))
    }

    @Test("Others do not", arguments: impossible.indices)
    func fails(index: Int) {
        #expect(throws: LinearizabilityChecker.Violation.self) { try LinearizabilityChecker.check(Self.operations(Self.impossible[index])) }
    }

    @Test("Each key stands by itself, and a valet's removal of nothing is done too")
    func keys() throws {
        let ones = Self.operations([(.set, 1, .done, 0, 1), (.read, 0, .value(1), 4, 5)], key: "valet-1")
        let others = Self.operations([(.remove, 0, .done, 2, 3), (.read, 0, .notFound, 6, 7)], key: "valet-2")
        try LinearizabilityChecker.check(ones + others)
        #expect(throws: LinearizabilityChecker.Violation.self) {
            try LinearizabilityChecker.check(Self.operations([(.remove, 0, .done, 2, 3)], key: "item-2"))
        }
    }

    @Test("A line holds all of an operation", arguments: possible.indices)
    func lines(index: Int) {
        for operation in Self.operations(Self.possible[index]) { #expect(RecordedOperation(operation.description) == operation) }
    }
}
