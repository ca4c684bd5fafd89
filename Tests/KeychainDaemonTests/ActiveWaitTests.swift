// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import KeychainIPC

@Suite("Waiting for a reply of keychaind without sleeping")
struct ActiveWaitTests {
    /// Returns for each of so many waits whether it has looked for the reply, which does not come, or at once where `isReady` says so.
    private func looks(_ wait: inout ActiveWait, count: Int, isReady: (Int) -> Bool = { _ in false }) -> [Bool] {
        (0..<count).map { number in
            var hasLooked = false
            wait.wait {
                hasLooked = true
                return isReady(number)
            }
            return hasLooked
        }
    }

    @Test("After each reply that comes too late, twice as many are waited for by sleeping, and 1,024 at most")
    func growingPauses() {
        var wait = ActiveWait()
        let looks = looks(&wait, count: 4_000)
        let looked = looks.indices.filter { looks[$0] }
        let pauses = zip(looked, looked.dropFirst()).map { $1 - $0 - 1 }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 1_024])
    }

    @Test("After a reply that came in time, the next ones are looked for, and the pauses are short again")
    func replyInTime() {
        var wait = ActiveWait()
        #expect(looks(&wait, count: 5) == [true, false, true, false, false])
        #expect(looks(&wait, count: 5, isReady: { $0 < 2 }) == [true, true, true, false, true])
    }
}
