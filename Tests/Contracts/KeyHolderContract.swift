// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// A rule that every `KeyHolder` follows, with a check.
///
/// Run all of `KeyHolderContract.rules`, each on a fresh subject.
package struct KeyHolderContract: Sendable, CustomStringConvertible {
    /// The key holders that a rule is checked on.
    package struct Subject: Sendable {
        let holder: any KeyHolder
        /// Another holder for the same store.
        let other: any KeyHolder
        let advanceTime: @Sendable (_ seconds: UInt32) -> Void

        /// - Parameters:
        ///   - holder: A holder for a store whose lock epoch is `KeyHolderContract.lockEpoch`; it holds nothing yet.
        ///   - other: Another holder for the same store.
        ///   - advanceTime: Returns when slightly more than this number of seconds has passed.
        package init(holder: any KeyHolder, other: any KeyHolder, advanceTime: @escaping @Sendable (_ seconds: UInt32) -> Void) {
            self.holder = holder
            self.other = other
            self.advanceTime = advanceTime
        }
    }

    /// The rule, in one sentence.
    package let description: String
    private let check: @Sendable (Subject, inout ContractFindings) throws(KeychainFailure) -> Void

    private init(
        _ description: String, _ check: @escaping @Sendable (Subject, inout ContractFindings) throws(KeychainFailure) -> Void
    ) {
        self.description = description
        self.check = check
    }

    /// The lock epoch of the store of a holder under test, unless a rule says otherwise.
    package static let lockEpoch = LockEpoch(rawValue: 7)

    /// Returns a sentence for each violation of the rule by the holders; empty if they follow the rule.
    package func violations(of subject: Subject) -> [String] {
        ContractFindings.violations { findings throws(KeychainFailure) in try check(subject, &findings) }
    }

    /// All rules; each needs a fresh subject.
    package static let rules = [
        KeyHolderContract("A new holder is empty, and removing from it succeeds") { subject, findings throws(KeychainFailure) in
            for slot in KeyHolderSlot.allCases {
                try findings.expect(subject.holder, holds: nil, in: slot, "at first")
                try subject.holder.remove(slot)
                try findings.expect(subject.holder, holds: nil, in: slot, "after removing nothing")
            }
        },
        KeyHolderContract("A held secret can be loaded unchanged any number of times") { subject, findings throws(KeychainFailure) in
            for byteCount in [1, 32, 64, 499, 500, 513, 5_000] {
                let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ byteCount) }
                try subject.holder.hold(bytes, timeoutSeconds: nil)
                for time in 1...3 { try findings.expect(subject.holder, holds: bytes, "at load \(time) of \(byteCount) bytes") }
            }
        },
        KeyHolderContract("A load reports the timeout that the secret was held with") { subject, findings throws(KeychainFailure) in
            for seconds: UInt32? in [1_000, nil, .max] {
                try subject.holder.hold([1], timeoutSeconds: seconds)
                for holder in [subject.holder, subject.other] {
                    guard let held = try holder.load(.unlocked) else {
                        findings.expect(false, "nothing is held")
                        continue
                    }
                    let answer = held.timeoutSeconds
                    findings.expect(
                        answer == seconds, "the timeout is \(String(describing: answer)) instead of \(String(describing: seconds))")
                }
            }
        },
        KeyHolderContract("A held secret replaces the previous one") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], timeoutSeconds: nil)
            try findings.expect(subject.other, holds: [1], "at first")
            try subject.other.hold([2, 2], timeoutSeconds: nil)
            for holder in [subject.holder, subject.other] { try findings.expect(holder, holds: [2, 2], "after a replacement") }
        },
        KeyHolderContract("The device secret is unaffected by locks, and is removed by removal and by discarding") {
            subject, findings throws(KeychainFailure) in
            let before = LockEpoch(rawValue: -1)
            try subject.holder.hold([1], in: .device, timeoutSeconds: nil, lockEpoch: before)
            for slot in KeyHolderSlot.ofClassKeys {
                try subject.holder.hold([2], in: slot, timeoutSeconds: nil, lockEpoch: before)
                try findings.expect(subject.other, holds: nil, in: slot, "though the store was locked after it was held")
                try subject.holder.remove(slot)
            }
            for holder in [subject.holder, subject.other] {
                try findings.expect(holder, holds: [1], in: .device, "after everything was locked and removed")
            }
            guard let ticket = try subject.other.load(.device)?.ticket else { return findings.expect(false, "nothing is held") }
            subject.other.discard(.device, ticket: ticket)
            try findings.expect(subject.holder, holds: nil, in: .device, "after it was discarded")
            try subject.holder.hold([3], in: .device, timeoutSeconds: nil, lockEpoch: before)
            try subject.other.remove(.device)
            try findings.expect(subject.holder, holds: nil, in: .device, "after it was removed")
        },
        KeyHolderContract("The slots are independent") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], in: .unlocked, timeoutSeconds: nil)
            try findings.expect(subject.holder, holds: nil, in: .firstUnlock, "while the other slot is full")
            try subject.holder.hold([2], in: .firstUnlock, timeoutSeconds: nil)
            try findings.expect(subject.holder, holds: [1], in: .unlocked, "while both slots are full")
            try subject.holder.remove(.unlocked)
            try findings.expect(subject.holder, holds: nil, in: .unlocked, "after its removal")
            try findings.expect(subject.holder, holds: [2], in: .firstUnlock, "after the other was removed")
        },
        KeyHolderContract("A removal is seen by every holder of the store") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], timeoutSeconds: nil)
            for holder in [subject.holder, subject.other] { try findings.expect(holder, holds: [1], "before it is removed") }
            try subject.other.remove(.unlocked)
            for holder in [subject.holder, subject.other] { try findings.expect(holder, holds: nil, "after it was removed") }
            try subject.holder.hold([2], timeoutSeconds: nil)
            for holder in [subject.holder, subject.other] { try findings.expect(holder, holds: [2], "after it was held again") }
        },
        KeyHolderContract("Discarding removes the secret with that ticket and no other") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], timeoutSeconds: nil)
            guard let first = try subject.holder.load(.unlocked)?.ticket else { return findings.expect(false, "nothing is held") }
            try subject.other.hold([2], timeoutSeconds: nil)
            subject.holder.discard(.unlocked, ticket: first)
            try findings.expect(subject.holder, holds: [2], "after the replaced secret was discarded")
            guard let second = try subject.holder.load(.unlocked)?.ticket else { return findings.expect(false, "nothing is held") }
            findings.expect(first != second, "two secrets have the same ticket")
            subject.other.discard(.unlocked, ticket: .max)
            try findings.expect(subject.holder, holds: [2], "after an unknown ticket was discarded")
            subject.other.discard(.unlocked, ticket: second)
            for holder in [subject.holder, subject.other] { try findings.expect(holder, holds: nil, "after it was discarded") }
        },
        KeyHolderContract("An unused secret expires after its timeout; without a timeout it does not") {
            subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], in: .unlocked, timeoutSeconds: 1)
            try subject.holder.hold([2], in: .firstUnlock, timeoutSeconds: nil)
            subject.advanceTime(1)
            for holder in [subject.holder, subject.other] {
                try findings.expect(holder, holds: nil, in: .unlocked, "after its timeout")
                try findings.expect(holder, holds: [2], in: .firstUnlock, "without a timeout")
            }
            try subject.holder.hold([3], in: .unlocked, timeoutSeconds: nil)
            try findings.expect(subject.other, holds: [3], in: .unlocked, "after another secret expired in the slot")
        },
        KeyHolderContract("A replacement has its own timeout") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], in: .unlocked, timeoutSeconds: 1)
            try subject.holder.hold([2], in: .unlocked, timeoutSeconds: nil)
            try subject.holder.hold([3], in: .firstUnlock, timeoutSeconds: nil)
            try subject.holder.hold([4], in: .firstUnlock, timeoutSeconds: 1)
            subject.advanceTime(1)
            try findings.expect(subject.holder, holds: [2], in: .unlocked, "after the timeout of the secret it replaced")
            try findings.expect(subject.holder, holds: nil, in: .firstUnlock, "after its timeout, though the secret it replaced had none")
        },
        KeyHolderContract("Secrets of two keybag generations are held side by side and removed together") {
            subject, findings throws(KeychainFailure) in
            let (older, newer) = (
                subject.holder.forKeybag(KeybagIdentity(generation: 7)), subject.other.forKeybag(KeybagIdentity(generation: 8))
            )
            try older.hold([7], timeoutSeconds: nil)
            try newer.hold([8], timeoutSeconds: nil)
            try findings.expect(older, holds: [7], "beside a newer generation")
            try findings.expect(newer, holds: [8], "beside an older generation")
            try findings.expect(
                subject.other.forKeybag(KeybagIdentity(generation: 7)), holds: [7], "for another holder of the same generation")
            try findings.expect(older.forKeybag(KeybagIdentity(generation: 6)), holds: nil, "for a generation without a secret")
            try newer.removeOlder(.unlocked)
            try findings.expect(older, holds: nil, "after older generations were removed")
            try findings.expect(newer, holds: [8], "after older generations were removed")
            try older.hold([7, 7], timeoutSeconds: nil)
            try older.remove(.unlocked)
            for holder in [older, newer] { try findings.expect(holder, holds: nil, "after the slot was emptied") }
        },
        KeyHolderContract("Two keybags of the same generation are held separately, until the slot is emptied") {
            subject, findings throws(KeychainFailure) in
            let (one, two) = (KeybagIdentity(generation: 7, tag: 1), KeybagIdentity(generation: 7, tag: 2))
            try subject.holder.forKeybag(one).hold([1], timeoutSeconds: nil)
            try subject.other.forKeybag(two).hold([2], timeoutSeconds: nil)
            try findings.expect(subject.other.forKeybag(one), holds: [1], "beside another keybag of the same generation")
            try subject.holder.forKeybag(one).removeOlder(.unlocked)
            try findings.expect(
                subject.holder.forKeybag(two), holds: [2], "after another keybag of the same generation removed older generations")
            try subject.holder.remove(.unlocked)
            for mark in [one, two] { try findings.expect(subject.other.forKeybag(mark), holds: nil, "after the slot was emptied") }
        },
        KeyHolderContract("A secret held before a lock is not returned after it, whichever process locks") {
            subject, findings throws(KeychainFailure) in
            let held = KeyHolderContract.lockEpoch
            for slot in KeyHolderSlot.allCases {
                try subject.holder.hold([1], in: slot, timeoutSeconds: nil, lockEpoch: LockEpoch(rawValue: held.rawValue - 1))
            }
            try findings.expect(subject.other, holds: nil, in: .unlocked, "though the store was locked after it was held")
            try findings.expect(subject.other, holds: [1], in: .firstUnlock, "after a lock that does not concern its slot")
        },
        KeyHolderContract("A load at an epoch before a lock neither returns nor removes a secret held after the lock") {
            subject, findings throws(KeychainFailure) in
            let before = KeyHolderContract.lockEpoch
            let locks: [(LockExtent, KeyHolderSlot)] = [(.whenUnlocked, .unlocked), (.everything, .unlocked), (.everything, .firstUnlock)]
            for (extent, slot) in locks {
                let after = before.advanced(by: extent)
                try subject.holder.hold([1], in: slot, timeoutSeconds: nil, lockEpoch: after)
                for holder in [subject.holder, subject.other] {
                    try findings.expect(holder, holds: nil, in: slot, "for a call from before the lock")
                    try findings.expect(holder, holds: [1], in: slot, at: after, "after a call from before the lock")
                }
            }
        },
        KeyHolderContract("A secret held before a lock is removed by the first load after it") {
            subject, findings throws(KeychainFailure) in
            let before = KeyHolderContract.lockEpoch
            for slot in KeyHolderSlot.ofClassKeys {
                try subject.holder.hold([1], in: slot, timeoutSeconds: nil)
                try findings.expect(subject.other, holds: nil, in: slot, at: before.advanced(by: .everything), "after the lock")
                try findings.expect(subject.holder, holds: nil, in: slot, "for the epoch that it was held at")
            }
        },
        KeyHolderContract("An inspection does not extend the timeout") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], timeoutSeconds: 2)
            for _ in 1...2 {
                subject.advanceTime(1)
                for holder in [subject.holder, subject.other] {
                    _ = try holder.load(.unlocked, for: .inspection, lockEpoch: KeyHolderContract.lockEpoch)
                }
            }
            subject.advanceTime(1)
            try findings.expect(subject.holder, holds: nil, "after its timeout, during which it was only inspected")
        },
    ]
}

extension ContractFindings {
    fileprivate mutating func expect(
        _ holder: any KeyHolder, holds expected: [UInt8]?, in slot: KeyHolderSlot = .unlocked,
        at lockEpoch: LockEpoch = KeyHolderContract.lockEpoch, _ moment: String
    ) throws(KeychainFailure) {
        let found = try holder.bytes(in: slot, at: lockEpoch)
        let words = found.map { "other bytes (\($0.count))" } ?? "nothing"
        expect(found == expected, "\(moment): \(words) in slot \(slot.rawValue)")
    }
}

extension KeyHolder {
    /// Holds bytes that need no protection.
    package func hold(
        _ bytes: [UInt8], in slot: KeyHolderSlot = .unlocked, timeoutSeconds: UInt32?, lockEpoch: LockEpoch = KeyHolderContract.lockEpoch
    ) throws(KeychainFailure) {
        let secret = try unsafe SecretBytes(byteCount: bytes.count) { buffer in
            // The buffer has exactly this many bytes.
            unsafe buffer.copyBytes(from: bytes)
        }
        try hold(secret, in: slot, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch)
    }

    package func load(
        _ slot: KeyHolderSlot, at lockEpoch: LockEpoch = KeyHolderContract.lockEpoch
    ) throws(KeychainFailure) -> HeldSecret? {
        try load(slot, for: .use, lockEpoch: lockEpoch)
    }

    package func bytes(
        in slot: KeyHolderSlot, at lockEpoch: LockEpoch = KeyHolderContract.lockEpoch
    ) throws(KeychainFailure) -> [UInt8]? {
        guard let held = try load(slot, at: lockEpoch) else { return nil }
        // The bytes are copied within the closure, to be compared.
        return unsafe held.secret.withBytes { unsafe Array($0) }
    }
}
#endif
