// SPDX-License-Identifier: Apache-2.0

/// How long a connection waits for a lock that another one holds.
///
/// SQLite asks it again and again: wait or give up?
///
/// SQLite's own timeout counts its sleeps and not the time, so that a loaded machine waits much longer than was said.
final class BusyWait {
    private let limitNanoseconds: UInt64
    private var deadline: Deadline

    private enum Deadline {
        /// The time begins with the first wait.
        case fromFirstWait
        case at(UInt64)
        case none
    }

    init(limitMilliseconds: Int) {
        limitNanoseconds = UInt64(clamping: limitMilliseconds) * 1_000_000
        deadline = .fromFirstWait
    }

    func startWithFirstWait() { deadline = .fromFirstWait }

    func giveUp(atNanoseconds time: UInt64) { deadline = .at(time) }

    func neverWait() { deadline = .none }

    /// Sleeps a little and answers true; false once the time is up.
    func wait(attempt: Int) -> Bool {
        let now = MonotonicClock.nowNanoseconds()
        let end: UInt64
        switch deadline {
        case .none: return false
        case .at(let time): end = time
        case .fromFirstWait:
            end = now &+ limitNanoseconds
            deadline = .at(end)
        }
        guard now < end else { return false }
        // Doubling from a quarter of a millisecond, the length of a write, to eight; varied, so that waiters do not march in step.
        let step = UInt64(250_000) << UInt64(min(attempt, 5))
        MonotonicClock.sleep(nanoseconds: min(UInt64.random(in: step / 2...step), end - now))
        return true
    }
}
