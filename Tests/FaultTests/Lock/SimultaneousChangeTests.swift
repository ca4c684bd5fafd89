// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Two processes change the passcode at the same time")
struct SimultaneousChangeTests {
    @Test(
        "One of them succeeds, and the keychain is unlocked afterwards for everybody", .enabled(if: KernelKeyHolder.isPossible),
        arguments: ["change", "rotate"])
    func unlockedAfterwards(operation: String) throws {
        try withLocalKeychain(holder: .automatic) { keychain, home in
            try keychain.set("start")
            try keychain.addItem("item", "secret of item", .whenUnlocked)
            let processes = [try SessionProcess(home: home), try SessionProcess(home: home)]
            var passcode = "start"
            for round in 0..<25 {
                let candidates = ["left \(round)", "right \(round)"].map { $0.replacing(" ", with: "-") }
                for (process, candidate) in zip(processes, candidates) { process.send("\(operation) \(passcode) \(candidate)") }
                let statuses = try processes.map { KeychainStatus(rawValue: try $0.answer().status) }
                // The slower one finds another passcode than it was told.
                let winners = zip(candidates, statuses).filter { $0.1 == .success }.map(\.0)
                #expect(!winners.isEmpty && statuses.allSatisfy { $0 == .success || $0 == .authFailed }, "\(statuses)")
                #expect(try keychain.sessionStatus().state == .unlocked, "round \(round)")
                #expect(try keychain.secret(of: "item") == "secret of item")
                passcode = try #require(winners.last)
            }
        }
    }
}
