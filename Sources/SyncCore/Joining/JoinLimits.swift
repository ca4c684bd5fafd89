// SPDX-License-Identifier: Apache-2.0

/// The times and sizes of joining.
enum JoinLimits {
    /// How long an invitation can be used.
    static let lifetime: Double = 600
    /// How long an answer stays in the storage.
    static let answerLifetime: Double = 3_600
    /// How long an ended invitation is remembered, because a listing may lack an object that was created shortly before.
    static let retention: Double = 3_600
    /// By how much a clock may be set back without ending the invitations in the ledger.
    static let clockTolerance: Double = 60
    /// How long the offer has to be missing before it counts as withdrawn, because a listing may lack objects.
    static let absence: Double = 30
    static let pollInterval: Double = 1
    /// The number of objects that are read of one invitation, which has four.
    static let objectCount = 64
}

/// The time that has passed for one side.
///
/// A clock that is set back does not add time, and does not take any away, so it never prolongs an invitation for ever.
struct JoinClock {
    private(set) var elapsed: Double = 0
    private var last: Double

    init(now: Double) { last = now }

    mutating func advance(to now: Double) {
        // A comparison with a number that is not one is false, and an infinite time ends everything.
        if now > last { elapsed += now - last }
        if !now.isNaN { last = now }
    }
}
