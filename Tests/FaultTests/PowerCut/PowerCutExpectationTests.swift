// SPDX-License-Identifier: Apache-2.0
import PowerCutSimulation
import Testing

@Suite("What may be found after a power cut")
struct PowerCutExpectationTests {
    private static let item = WorkloadItem(valet: .everyday, key: "key")
    private static let plan = WorkloadPlan(operations: [
        .set(item, to: "first"), .set(item, to: "second"), .remove(item), .setPasscode("12345"), .set(item, to: "third"),
        .migrate(from: .everyday, to: .former, removingOriginals: true),
    ])

    private func complaints(after marks: [String], _ found: [FoundKeychain]) throws -> [Bool] {
        var expectation = PowerCutExpectation(Self.plan)
        for mark in marks { try expectation.apply(mark: mark) }
        return found.map { expectation.complaint(about: $0) != nil }
    }

    private func world(_ items: [String: String], passcode: String? = nil) -> FoundKeychain {
        .world(KeychainWorld(items: items, passcode: passcode))
    }

    @Test("Before the first acknowledgement there may be none, an empty one, or the value; never another value or an unusable one")
    func creation() throws {
        let found = [
            .absent, world([:]), world(["everyday/key": "first"]), world(["everyday/key": "firs"]),
            world(["everyday/key": "first", "everyday/more": "x"]), .unusable("why"),
        ]
        #expect(try complaints(after: ["begin 0"], found) == [false, false, false, true, true, true])
        #expect(try complaints(after: [], found) == [false, true, true, true, true, true])
        #expect(try complaints(after: ["begin 0", "acknowledged 0"], found) == [true, true, false, true, true, true])
    }

    @Test("While a value is being written over it is the old or the new one, and never absent")
    func overwriting() throws {
        let marks = ["begin 0", "acknowledged 0", "begin 1"]
        let found = [world(["everyday/key": "first"]), world(["everyday/key": "second"]), world([:]), .absent]
        #expect(try complaints(after: marks, found) == [false, false, true, true])
        #expect(try complaints(after: marks + ["acknowledged 1"], found) == [true, false, true, true])
        // Refused with an unknown outcome: either, until it is known.
        #expect(try complaints(after: marks + ["failed 1 -36"], found) == [false, false, true, true])
        #expect(try complaints(after: marks + ["failed 1 -36", "begin 2", "acknowledged 2"], found) == [true, true, false, true])
    }

    @Test("A passcode is there or not, and a migration leaves every value in one place or both")
    func passcodeAndMigration() throws {
        let marks = (0..<3).flatMap { ["begin \($0)", "acknowledged \($0)"] } + ["begin 3"]
        let passcodes = [world([:]), world([:], passcode: "12345"), world([:], passcode: "x")]
        #expect(try complaints(after: marks, passcodes) == [false, false, true])
        let migrating = marks + ["acknowledged 3", "begin 4", "acknowledged 4", "begin 5"]
        let found = [
            world(["everyday/key": "third"], passcode: "12345"),
            world(["everyday/key": "third", "former/key": "third"], passcode: "12345"),
            world(["former/key": "third"], passcode: "12345"), world([:], passcode: "12345"), world(["former/key": "third"]),
        ]
        #expect(try complaints(after: migrating, found) == [false, false, false, true, true])
    }
}
