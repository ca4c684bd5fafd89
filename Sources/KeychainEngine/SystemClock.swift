// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import KeychainCore

/// The system's clock.
package struct SystemClock: WallClock {
    package init() {}

    package func now() -> Double { Date().timeIntervalSinceReferenceDate }
}
