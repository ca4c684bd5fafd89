// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// Checks whether a concurrent history is linearizable.
///
/// Each call must have taken effect at one moment between its start and its end. The check visits starts and ends in order of time, and
/// keeps every possible state of the key together with the pending calls that have taken effect in it.
///
/// Source: Lowe, "Testing for linearizability", section on just-in-time linearization.
struct LinearizabilityChecker {
    /// Why a history is not linearizable.
    struct Violation: Error, CustomStringConvertible {
        /// The call whose result no order explains.
        let operation: HistoryEntry
        /// The possible values of the key when the call ended; nil for no value.
        let possibleValues: Set<Int?>

        var description: String { "\(operation) fits none of what the key may have held: \(possibleValues)" }
    }

    private struct Configuration: Hashable {
        /// Nil: no value.
        var value: Int?
        /// The pending calls that have taken effect.
        var effective: Set<Int>
    }

    private let operations: [HistoryEntry]
    private var underWay: Set<Int> = []
    private var configurations: Set<Configuration> = [Configuration(value: nil, effective: [])]

    /// Checks the operations of all keys, each key by itself.
    ///
    /// Failed calls are left out: they changed nothing.
    static func check(_ operations: [HistoryEntry]) throws(Violation) {
        for (_, ofKey) in Dictionary(grouping: operations, by: \.key).sorted(by: { $0.key < $1.key }) {
            var checker = LinearizabilityChecker(
                operations: ofKey.filter { if case .failed = $0.answer { false } else { true } })
            try checker.run()
        }
    }

    private init(operations: [HistoryEntry]) {
        self.operations = operations
    }

    private mutating func run() throws(Violation) {
        // At equal times starts come first, so that the calls overlap.
        let events =
            (operations.indices.map { (nanoseconds: operations[$0].startNanoseconds, isEnd: false, index: $0) }
            + operations.indices.map { (nanoseconds: operations[$0].endNanoseconds, isEnd: true, index: $0) })
            .sorted { ($0.nanoseconds, $0.isEnd ? 1 : 0, $0.index) < ($1.nanoseconds, $1.isEnd ? 1 : 0, $1.index) }
        for event in events {
            if event.isEnd { try end(event.index) } else { underWay.insert(event.index) }
        }
    }

    /// Keeps the states in which this call has taken effect.
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

    /// Returns the value of the key after the call, or nil if the call's answer contradicts `value`.
    private static func effect(of operation: HistoryEntry, on value: Int?) -> Int?? {
        switch (operation.verb, operation.answer) {
        case (.set, .done): .some(operation.written)
        case (.add, .done): value == nil ? .some(operation.written) : nil
        case (.add, .duplicate): value != nil ? .some(value) : nil
        case (.update, .done): value != nil ? .some(operation.written) : nil
        case (.update, .notFound), (.read, .notFound): value == nil ? .some(nil) : nil
        case (.read, .value(let read)): value == read ? .some(value) : nil
        // Valet's removal also succeeds if there is no item; SecItemDelete reports that.
        case (.remove, .done): operation.key.hasPrefix("valet") || value != nil ? .some(nil) : nil
        case (.remove, .notFound): value == nil ? .some(nil) : nil
        default: nil
        }
    }
}

@Suite("Linearizability checker")
struct LinearizabilityCheckerTests {
    typealias History = [(verb: HistoryEntry.Verb, written: Int, answer: HistoryEntry.Answer, start: UInt64, end: UInt64)]

    private static func operations(_ history: History, key: String = "item") -> [HistoryEntry] {
        history.map {
            HistoryEntry(
                key: key, verb: $0.verb, written: $0.written, answer: $0.answer, startNanoseconds: $0.start, endNanoseconds: $0.end)
        }
    }

    static let possible: [History] = [
        [],
        [
            (.read, 0, .notFound, 0, 1), (.add, 1, .done, 2, 3), (.read, 0, .value(1), 4, 5), (.remove, 0, .done, 6, 7),
            (.read, 0, .notFound, 8, 9),
        ],
        // Reads that overlap a write may see either value, but not the old one after the new one.
        [(.add, 1, .done, 0, 1), (.set, 2, .done, 2, 9), (.read, 0, .value(1), 3, 4), (.read, 0, .value(2), 5, 6)],
        [(.add, 1, .done, 0, 9), (.add, 2, .duplicate, 1, 8), (.update, 3, .done, 2, 7), (.read, 0, .value(3), 10, 11)],
        [(.set, 1, .done, 0, 9), (.remove, 0, .done, 0, 9), (.read, 0, .notFound, 10, 11)],
        // Failed calls change nothing.
        [(.set, 1, .done, 0, 1), (.set, 2, .failed(-25291), 2, 3), (.read, 0, .value(1), 4, 5)],
    ]

    static let impossible: [History] = [
        // Reads of a value that was never written, of an overwritten value, and of no value while there is one.
        [(.read, 0, .value(1), 0, 1)],
        [(.set, 1, .done, 0, 1), (.set, 2, .done, 2, 3), (.read, 0, .value(1), 4, 5)],
        [(.set, 1, .done, 0, 1), (.read, 0, .notFound, 2, 3)],
        // The second read returns an older value than the first.
        [(.set, 1, .done, 0, 1), (.set, 2, .done, 2, 9), (.read, 0, .value(2), 3, 4), (.read, 0, .value(1), 5, 6)],
        // Two successful adds, and a lost update.
        [(.add, 1, .done, 0, 9), (.add, 2, .done, 1, 8)],
        [(.add, 1, .done, 0, 1), (.update, 2, .done, 2, 3), (.update, 3, .done, 4, 5), (.read, 0, .value(2), 6, 7)],
        [(.add, 1, .duplicate, 0, 1)],
        [(.update, 1, .notFound, 2, 3), (.add, 2, .done, 0, 1)],
        // A value that was missing while it was being replaced.
        [(.set, 1, .done, 0, 1), (.set, 2, .done, 2, 9), (.read, 0, .notFound, 3, 4)],
        [(.set, 1, .done, 0, 1), (.set, 2, .failed(-25291), 2, 3), (.read, 0, .value(2), 4, 5)],
    ]

    @Test("Linearizable histories pass", arguments: possible.indices)
    func passes(index: Int) throws {
        try LinearizabilityChecker.check(Self.operations(Self.possible[index]))
    }

    @Test("Other histories fail", arguments: impossible.indices)
    func fails(index: Int) {
        #expect(throws: LinearizabilityChecker.Violation.self) { try LinearizabilityChecker.check(Self.operations(Self.impossible[index])) }
    }

    @Test("Keys are checked independently, and removing an absent value through a valet succeeds")
    func keys() throws {
        let ones = Self.operations([(.set, 1, .done, 0, 1), (.read, 0, .value(1), 4, 5)], key: "valet-1")
        let others = Self.operations([(.remove, 0, .done, 2, 3), (.read, 0, .notFound, 6, 7)], key: "valet-2")
        try LinearizabilityChecker.check(ones + others)
        #expect(throws: LinearizabilityChecker.Violation.self) {
            try LinearizabilityChecker.check(Self.operations([(.remove, 0, .done, 2, 3)], key: "item-2"))
        }
    }

    @Test("An operation is encoded as a line of text and decoded", arguments: possible.indices)
    func lines(index: Int) {
        for operation in Self.operations(Self.possible[index]) { #expect(HistoryEntry(operation.description) == operation) }
    }
}

@Suite("Concurrent operations of many processes and threads on the same keys", .blocking)
struct ManyAtOnceTests {
    private static let processCount = 8
    private static let threadCount = 8
    private static let seconds = Scale.pick(0.8, full: 30)
    /// The time that a call waits for other writers, the default of `StoreOptions`.
    private static let deadlineNanoseconds: UInt64 = 5_000_000_000
    /// Eight idle readers and the writer, each with the database, its -wal, and the descriptors of its locks on the database and on the -shm file;
    /// the -shm, the anchor, and the directory of the process; and a few that the system's libraries may open.
    private static let greatestDescriptorCount = 9 * 4 + 3 + 4

    private struct Run {
        var operations: [HistoryEntry] = []
        var descriptorCounts: [Int] = []
    }

    private static func run(_ options: [String] = []) throws -> Run {
        try withTemporaryDirectory { directory in
            let program = try BuiltProgram.path(of: "KeychainTestChild")
            let children = try (0..<processCount).map { process in
                try ChildProcess(
                    program, ["mixed-operations", String(process), String(threadCount), String(seconds)] + options,
                    environment: ["KEYCHAIN_HOME": directory + "/home"])
            }
            for child in children { #expect(try child.readLine() == "ready") }
            for child in children { child.send("go") }
            var run = Run()
            for child in children {
                while let line = try child.readLine(withinSeconds: seconds + 120), line != "end" {
                    if let operation = HistoryEntry(line) {
                        run.operations.append(operation)
                    } else if line.hasPrefix("descriptors "), let count = Int(line.dropFirst("descriptors ".count)) {
                        run.descriptorCounts.append(count)
                    } else {
                        Issue.record("\(line)")
                    }
                }
                #expect(try child.waitUntilEnded() == .exited(0))
            }
            return run
        }
    }

    @Test("The history of every key is linearizable, no call times out early, and no descriptor leaks")
    func linearizable() throws {
        let run = try Self.run()
        try LinearizabilityChecker.check(run.operations)
        for operation in run.operations {
            guard case .failed(let status) = operation.answer else { continue }
            let waited = operation.endNanoseconds - operation.startNanoseconds
            #expect(
                status == KeychainStatus.notAvailable.rawValue && waited >= Self.deadlineNanoseconds,
                "\(operation) after \(waited) ns")
        }
        // Calls of every kind succeeded.
        let succeeded = Set(run.operations.filter { $0.answer != .notFound && $0.answer != .duplicate }.map(\.verb))
        #expect(succeeded == Set(HistoryEntry.Verb.allCases))
        #expect(run.operations.count > Self.processCount * Self.threadCount)
        #expect(run.descriptorCounts.count == 2 * Self.processCount)
        #expect(run.descriptorCounts.allSatisfy { $0 <= Self.greatestDescriptorCount }, "\(run.descriptorCounts)")
    }

    @Test("The check finds a cache that is never invalidated")
    func planted() throws {
        // A short run may happen to read nothing stale; five such runs in a row do not.
        for _ in 0..<Scale.pick(5, full: 1) {
            let operations = try Self.run(["stale"]).operations
            do throws(LinearizabilityChecker.Violation) { try LinearizabilityChecker.check(operations) } catch { return }
        }
        Issue.record("no stale read was found")
    }
}

@Suite("Concurrent updates of one item", .blocking)
struct UpdatesOfOneItemTests {
    @Test("An update keeps the other callers' changes to other attributes")
    func changesOfOtherAttributes() async throws {
        let directory = try TemporaryDirectory()
        let keychain = LocalKeychain(home: directory.path + "/home")
        try keychain.addItem("shared", "secret")
        let query = ItemQuery(
            itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("shared"), .service: .string("test")]))
        let attributes: [Attribute] = [.label, .comment, .description, .creator]
        let outcomes = await onThreads(
            attributes.map { attribute in
                { @Sendable () -> Result<Int, any Error> in
                    Result {
                        var lostCount = 0
                        for round in 1...Int64(Scale.pick(20, full: 100)) {
                            let value: AttributeValue = attribute == .creator ? .number(round) : .string("round \(round)")
                            try keychain.update(UpdateRequest(query: query, changes: ItemAttributes([attribute: value])))
                            // No other thread changes this attribute.
                            let item = try keychain.copyMatching(MatchRequest(query: query)).first
                            if item?.attributes[attribute] != value { lostCount += 1 }
                        }
                        return lostCount
                    }
                }
            })
        for outcome in outcomes { #expect(try outcome.get() == 0) }
        #expect(try keychain.secret(of: "shared") == "secret")
    }
}
