// SPDX-License-Identifier: Apache-2.0

/// The output of a peer's measuring program: lines of a name and a number.
///
/// The name is an operation, with a sample in nanoseconds, or `memory` or `daemon-memory`, in KiB.
package struct PeerOutput {
    package private(set) var samples: [KeychainOperation: Samples] = [:]
    package private(set) var memoryKibibytes: Int?
    package private(set) var daemonMemoryKibibytes: Int?

    /// Returns nil for any other line, because an incomplete report must not be used.
    package init?(_ text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2, let number = UInt64(words[1]), let kibibytes = Int(exactly: number) else { return nil }
            if let operation = KeychainOperation(rawValue: String(words[0])) {
                samples[operation, default: Samples()].append(nanoseconds: number)
            } else if words[0] == "memory" {
                memoryKibibytes = kibibytes
            } else if words[0] == "daemon-memory" {
                daemonMemoryKibibytes = kibibytes
            } else {
                return nil
            }
        }
        if samples.isEmpty { return nil }
    }

    package func rows(_ contestant: Contestant, itemCount: Int) -> [Row] {
        samples.compactMap { Row(contestant, $0.key, itemCount: itemCount, $0.value) }
    }
}
