// SPDX-License-Identifier: Apache-2.0

/// How often each rare state was reached.
package struct Counters: Sendable {
    package private(set) var counts: [String: Int] = [:]

    package init() {}

    mutating func count(_ name: String) { counts[name, default: 0] += 1 }

    package mutating func add(_ other: Counters) {
        for (name, count) in other.counts { counts[name, default: 0] += count }
    }
}
