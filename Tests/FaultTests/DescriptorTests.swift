// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTestSupport
import Testing

@Suite("File descriptors")
struct DescriptorTests {
    @Test("Opening and failing to open, again and again, leaves none open")
    func noneLeaks() throws {
        try withTemporaryDirectory { directory in
            let states = BadState.all.enumerated().map { (directory + "/bad-\($0.offset)", $0.element) }
                .filter { !$0.1.testDescription.contains("network") }
            for (home, state) in states {
                let keyFile = try BadStateTests.makeKeychain(home)
                try state.prepare(home, keyFile)
            }
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "KeychainTestChild"), ["count-descriptors", directory + "/good"] + states.map(\.0))
            #expect(run.ending == .exited(0), "\(run.output)")
            let lines = run.output.split(separator: "\n").suffix(2)
            let counts = lines.compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
            #expect(counts.count == 2 && counts.first == counts.last, "\(lines)")
        }
    }
}
