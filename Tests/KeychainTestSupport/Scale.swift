// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The number of rounds of repetitive tests.
///
/// Every test runs at every scale, and with the same assertions: a smaller scale only means fewer rounds.
package enum Scale {
    private static let name = ProcessInfo.processInfo.environment["KEYCHAIN_TEST_SCALE"]

    /// Whether tests run as many rounds as they have, which takes minutes: `KEYCHAIN_TEST_SCALE=full`, as `make test-all` sets it.
    package static let isFull = name == "full" || isExhaustive

    /// Whether every single byte of a file is damaged in turn, which takes hours: `KEYCHAIN_TEST_SCALE=exhaustive`.
    package static let isExhaustive = name == "exhaustive"

    /// Returns `small` in an ordinary run of the tests, `full` at full scale.
    package static func pick<Value>(_ small: Value, full: Value) -> Value { isFull ? full : small }
}
