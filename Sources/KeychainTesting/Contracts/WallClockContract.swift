// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Foundation
package import KeychainCore

/// What every `WallClock` promises, as checks that any implementation can be put through.
package enum WallClockContract {
    /// Checks a clock that nobody has moved.
    ///
    /// - Returns: A sentence for each promise that was broken; empty when all were kept.
    package static func violations(of clock: any WallClock) -> [String] {
        let seconds = clock.now()
        guard seconds.isFinite else { return ["the time is \(seconds)"] }
        // Another unit, or another beginning of time, is farther off than any clock that is merely wrong.
        let difference = abs(seconds - Date().timeIntervalSinceReferenceDate)
        return difference < 24 * 60 * 60 ? [] : ["the time is \(difference) seconds off: it is counted in seconds since 2001"]
    }
}
#endif
