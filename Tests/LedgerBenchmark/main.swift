// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTestSupport

/// `swift run -c release LedgerBenchmark [--versions N] [--overwrites N]`: what synchronization costs a store.
///
/// Uses a temporary directory below `TMPDIR`, which should be on a disk.
var versionCount = 1_000_000
var overwriteCount = 2_000
var words = CommandLine.arguments.dropFirst()
while let name = words.popFirst() {
    guard let number = words.popFirst().flatMap({ Int($0) }), number > 0, ["--versions", "--overwrites"].contains(name) else {
        print("usage: LedgerBenchmark [--versions N] [--overwrites N]")
        exit(64)
    }
    if name == "--versions" { versionCount = number } else { overwriteCount = number }
}
try withTemporaryDirectory { directory in
    try RecordingCost(directory: directory, count: overwriteCount).run()
    try LedgerSize(directory: directory, count: versionCount).run()
}
