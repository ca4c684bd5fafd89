// SPDX-License-Identifier: Apache-2.0
import Foundation
import PowerCutSimulation

/// `swift run PowerCut [--seed N] [--images M] [--runs R]`: power cuts at every moment of R recorded runs of the workload.
///
/// The seeds are N, N + 1 and so on; the same seed gives the same images. M is the number of images for each run that hold an
/// arbitrary part of what was not flushed, beside the two for every moment.
var numbers: [String: UInt64] = ["--seed": UInt64.random(in: 0..<1_000_000_000), "--images": 10_000, "--runs": 2]
var words = CommandLine.arguments.dropFirst()
while let name = words.popFirst() {
    guard numbers[name] != nil, let value = words.popFirst().flatMap({ UInt64($0) }) else {
        print("usage: PowerCut [--seed N] [--images M] [--runs R]")
        exit(64)
    }
    numbers[name] = value
}
let lossCount = await PowerCutCommand.run(
    firstSeed: numbers["--seed"] ?? 0, imageCount: Int(numbers["--images"] ?? 0), runCount: numbers["--runs"] ?? 0)
exit(lossCount == 0 ? 0 : 1)
