// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTesting
import Testing

private struct FixedClock: WallClock {
    let seconds: Double

    func now() -> Double { seconds }
}

@Suite("Every clock keeps the promises of a clock")
struct WallClockContractTests {
    @Test("The system's clock")
    func systemClock() {
        #expect(WallClockContract.violations(of: SystemClock()) == [])
    }

    @Test("The clock of an in-memory keychain")
    func virtualClock() throws {
        #expect(WallClockContract.violations(of: try InMemoryKeychain().clock) == [])
    }

    @Test("A clock that counts from another year, in another unit, or not at all is found out")
    func broken() {
        let now = Date()
        for seconds in [now.timeIntervalSince1970, now.timeIntervalSinceReferenceDate * 1_000, .nan, .infinity, 0] {
            #expect(WallClockContract.violations(of: FixedClock(seconds: seconds)) != [])
        }
        #expect(WallClockContract.violations(of: FixedClock(seconds: now.timeIntervalSinceReferenceDate)) == [])
    }
}
