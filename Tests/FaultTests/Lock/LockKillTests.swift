// SPDX-License-Identifier: Apache-2.0
import KeychainEngine
import KeychainTestSupport
import Synchronization
import Testing

@Suite("A change of passcode or keys that is killed is done wholly or not at all, and can be finished")
struct LockKillTests {
    /// Over all operations: more than 200 kills at points of time alone.
    private static let pointCount = 42

    @Test(
        "Killed at any moment, every item is there and readable, with the one passcode or the other",
        arguments: PasscodeOperation.allCases)
    func killed(_ operation: PasscodeOperation) throws {
        try expectWholeOrNothing(operation)
    }

    @Test("A restore that is killed has put back every item of the backup, or none")
    func killedRestore() throws {
        try expectWholeOrNothing(RestoreOperation())
    }

    private func expectWholeOrNothing(_ scenario: any KillScenario) throws {
        let tally = try KillHarness(scenario: scenario).run(pointCount: Self.pointCount, callCount: 14)
        #expect(tally.killCount >= Self.pointCount)
        #expect(FlushTrace.obstacle != nil || tally.callCount > 0, "no call was met")
        #expect(tally.outcomes[.nothingDone] != nil && tally.outcomes[.done] != nil, "\(tally)")
    }

    @Test(
        "The harness sees an operation that is not all or nothing",
        .enabled(if: FlushTrace.obstacle == nil, "\(FlushTrace.obstacle ?? "")"))
    func plantedFault() throws {
        let scenario = TwoSteps()
        _ = try KillHarness(scenario: scenario).run(pointCount: 0, callCount: .max)
        #expect(scenario.halfDoneCount.load(ordering: .relaxed) > 0)
    }

    /// An operation of two transactions, which a kill can part.
    private final class TwoSteps: KillScenario {
        let halfDoneCount = Atomic(0)

        var request: String { "add-pair" }

        func prepare(home: String) throws {
            try LocalKeychain.cheaplyUnlocked(home: home).addItem("first", "there")
        }

        func check(home: String, _ comment: Comment) throws -> KillOutcome {
            let count = try LocalKeychain(home: home).secrets().count
            if count == 2 { halfDoneCount.add(1, ordering: .relaxed) }
            return count == 3 ? .done : .nothingDone
        }
    }
}
