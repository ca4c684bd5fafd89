// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainTestSupport
import Testing

/// Commits the fault that `Scripts/sanitize.sh` requests; the script checks the sanitizer's report.
@Suite("A planted fault is reported", .blocking, .enabled(if: PlantedFault.wanted != nil, "Scripts/sanitize.sh plants faults"))
struct PlantedFaultTests {
    @Test("in the process of the tests", .enabled(if: PlantedFault.process == "tests"))
    func inTests() throws {
        try #require(PlantedFault.wanted).commit()
    }

    @Test("in a child with an empty environment", .enabled(if: PlantedFault.process == "child"))
    func inChild() throws {
        let fault = try #require(PlantedFault.wanted)
        let run = try ChildProcess.run(try BuiltProgram.path(of: "KeychainTestChild"), ["commit-fault", fault.rawValue])
        // The sanitizer determines how the process ends, but the process must have started.
        #expect(run.ending != .exited(64), "\(run)")
    }
}

extension PlantedFault {
    private static let environment = ProcessInfo.processInfo.environment

    fileprivate static var wanted: PlantedFault? { environment["PLANTED_FAULT"].flatMap(PlantedFault.init) }

    fileprivate static var process: String? { environment["PLANTED_FAULT_IN"] }
}
