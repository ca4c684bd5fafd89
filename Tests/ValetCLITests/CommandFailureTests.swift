// SPDX-License-Identifier: Apache-2.0

import KeychainCore
import Testing

@testable import ValetCLI

@Suite("What is advised")
struct CommandFailureTests {
    @Test("Where something was done, nobody is told that nothing was")
    func partlyDone() {
        for status in [KeychainStatus.notAvailable, .readOnly, .inputOutput, .authFailed, .parameter] {
            let failure = CommandFailure(passcode: KeychainFailure(status, "done, but", remedy: .lockAgain))
            #expect(failure.status == .unavailable)
            #expect(!failure.advice.contains("Nothing was changed") && failure.advice.contains("valet "), "\(failure.advice)")
        }
    }

    @Test("Where a file was at fault, the file is what is advised about")
    func files() {
        #expect(CommandFailure(KeychainFailure(.notAvailable, "", remedy: .correctPolicy)).advice.contains("administrator"))
        #expect(CommandFailure(KeychainFailure(.notAvailable, "", remedy: .makeRoomForKeys)).advice.contains("keyctl"))
        #expect(CommandFailure(KeychainFailure(.notAvailable, "", remedy: .useNewerVersion)).advice.contains("newer"))
        #expect(CommandFailure(KeychainFailure(.notAvailable, "", remedy: .closeElsewhere)).advice.contains("End the programs"))
        let refused = CommandFailure(KeychainFailure(.notAvailable, "", isDamage: true, remedy: .repair))
        #expect(refused.advice.contains("valet repair") && refused.status == .damaged)
        #expect(CommandFailure(KeychainFailure(.inputOutput, "", remedy: .writeElsewhere)).advice.contains("another place"))
    }

    @Test("Each reason why nobody could be authenticated has an advice of its own")
    func refusals() {
        let refusals: [AuthenticationRefusal] = [
            .passcodeNotSet, .wrong, .lockedOut(seconds: 30), .timedOut, .biometryNotAvailable, .notInteractive, .invalidContext,
        ]
        let failures = refusals.map { CommandFailure(KeychainFailure(.authFailed, "why", refusal: $0)) }
        #expect(failures.allSatisfy { $0.status == .unavailable })
        #expect(Set(failures.map(\.advice)).count == refusals.count)
        #expect(failures[0].advice.contains("valet passcode set"))
        #expect(failures[2].advice.contains("30 s"))
        #expect(failures[5].advice.contains("--passcode-fd"))
        #expect(CommandFailure(KeychainFailure(.userCanceled, "why")).problem.contains("cancelled"))
    }
}
