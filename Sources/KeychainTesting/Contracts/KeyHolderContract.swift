// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// One rule that every `KeyHolder` keeps, with the check that shows it.
///
/// Run all of `KeyHolderContract.rules`, each on a fresh subject.
package struct KeyHolderContract: Sendable, CustomStringConvertible {
    /// What a rule is checked on.
    package struct Subject: Sendable {
        let holder: any KeyHolder
        /// Another holder of the same store.
        let other: any KeyHolder
        let advanceTime: @Sendable (_ seconds: UInt32) -> Void

        /// Two holders of one store, whose count of locks is `lockEpoch` and for which nothing is held; `advanceTime` returns when
        /// that much time is over, and a little more.
        package init(holder: any KeyHolder, other: any KeyHolder, advanceTime: @escaping @Sendable (_ seconds: UInt32) -> Void) {
            self.holder = holder
            self.other = other
            self.advanceTime = advanceTime
        }
    }

    /// The rule, in words.
    package let description: String
    private let check: @Sendable (Subject, inout Findings) throws(KeychainFailure) -> Void

    private init(
        _ description: String, _ check: @escaping @Sendable (Subject, inout Findings) throws(KeychainFailure) -> Void
    ) {
        self.description = description
        self.check = check
    }

    /// What the store of a holder under test answers.
    package static let lockEpoch = LockEpoch(rawValue: 7)

    /// What the holders do against the rule, a line each; empty when they keep it.
    package func violations(of subject: Subject) -> [String] {
        var findings = Findings()
        do throws(KeychainFailure) {
            try check(subject, &findings)
        } catch {
            findings.lines.append("unexpected failure: \(error)")
        }
        return findings.lines
    }

    /// Collects what was found.
    struct Findings {
        fileprivate(set) var lines: [String] = []

        fileprivate mutating func expect(
            _ holder: any KeyHolder, holds expected: [UInt8]?, in slot: KeyHolderSlot = .unlocked, _ moment: String
        ) throws(KeychainFailure) {
            let found = try holder.bytes(in: slot)
            guard found != expected else { return }
            let words = found.map { "other bytes (\($0.count))" } ?? "nothing"
            lines.append("\(moment), \(words) is held as \(slot.rawValue)")
        }

        fileprivate mutating func expect(_ isKept: Bool, _ violation: @autoclosure () -> String) {
            if !isKept { lines.append(violation()) }
        }
    }

    package static let rules = [
        KeyHolderContract("Nothing is held at first, and to remove it is success") { subject, findings throws(KeychainFailure) in
            for slot in KeyHolderSlot.allCases {
                try findings.expect(subject.holder, holds: nil, in: slot, "at first")
                try subject.holder.remove(slot)
                try findings.expect(subject.holder, holds: nil, in: slot, "after removing nothing")
            }
        },
        KeyHolderContract("What is held is loaded as it was, again and again") { subject, findings throws(KeychainFailure) in
            for byteCount in [1, 32, 64, 499, 500, 513, 5_000] {
                let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ byteCount) }
                try subject.holder.hold(bytes, timeoutSeconds: nil)
                for time in 1...3 { try findings.expect(subject.holder, holds: bytes, "at load \(time) of \(byteCount) bytes") }
            }
        },
        KeyHolderContract("A load says how long the secret is held without use") { subject, findings throws(KeychainFailure) in
            for seconds: UInt32? in [1_000, nil, .max] {
                try subject.holder.hold([1], timeoutSeconds: seconds)
                for holder in [subject.holder, subject.other] {
                    guard let held = try holder.load(.unlocked) else {
                        findings.expect(false, "nothing is held")
                        continue
                    }
                    let answer = held.timeoutSeconds
                    findings.expect(answer == seconds, "of \(String(describing: seconds)) seconds became \(String(describing: answer))")
                }
            }
        },
        KeyHolderContract("What is held later takes the place of what was there") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], timeoutSeconds: nil)
            try findings.expect(subject.other, holds: [1], "at first")
            try subject.other.hold([2, 2], timeoutSeconds: nil)
            for holder in [subject.holder, subject.other] { try findings.expect(holder, holds: [2, 2], "after a replacement") }
        },
        KeyHolderContract("What outlasts locks is given out after every lock, and goes when it is removed or discarded") {
            subject, findings throws(KeychainFailure) in
            let before = LockEpoch(rawValue: -1)
            try subject.holder.hold([1], in: .device, timeoutSeconds: nil, lockEpoch: before)
            for slot in KeyHolderSlot.ofClassKeys {
                try subject.holder.hold([2], in: slot, timeoutSeconds: nil, lockEpoch: before)
                try findings.expect(subject.other, holds: nil, in: slot, "held before the store was locked")
                try subject.holder.remove(slot)
            }
            for holder in [subject.holder, subject.other] {
                try findings.expect(holder, holds: [1], in: .device, "though everything was locked and removed")
            }
            guard let ticket = try subject.other.load(.device)?.ticket else { return findings.expect(false, "nothing is held") }
            subject.other.discard(.device, ticket: ticket)
            try findings.expect(subject.holder, holds: nil, in: .device, "after it was discarded")
            try subject.holder.hold([3], in: .device, timeoutSeconds: nil, lockEpoch: before)
            try subject.other.remove(.device)
            try findings.expect(subject.holder, holds: nil, in: .device, "after it was removed")
        },
        KeyHolderContract("The slots have nothing to do with each other") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], in: .unlocked, timeoutSeconds: nil)
            try findings.expect(subject.holder, holds: nil, in: .firstUnlock, "with the other slot full")
            try subject.holder.hold([2], in: .firstUnlock, timeoutSeconds: nil)
            try findings.expect(subject.holder, holds: [1], in: .unlocked, "with both slots full")
            try subject.holder.remove(.unlocked)
            try findings.expect(subject.holder, holds: nil, in: .unlocked, "after removing it")
            try findings.expect(subject.holder, holds: [2], in: .firstUnlock, "after removing the other")
        },
        KeyHolderContract("What is removed is gone for every holder of the store") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], timeoutSeconds: nil)
            for holder in [subject.holder, subject.other] { try findings.expect(holder, holds: [1], "before it is removed") }
            try subject.other.remove(.unlocked)
            for holder in [subject.holder, subject.other] { try findings.expect(holder, holds: nil, "after it was removed") }
            try subject.holder.hold([2], timeoutSeconds: nil)
            for holder in [subject.holder, subject.other] { try findings.expect(holder, holds: [2], "held again") }
        },
        KeyHolderContract("Discarding lets go of what that load gave, and of nothing else") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], timeoutSeconds: nil)
            guard let first = try subject.holder.load(.unlocked)?.ticket else { return findings.expect(false, "nothing is held") }
            try subject.other.hold([2], timeoutSeconds: nil)
            subject.holder.discard(.unlocked, ticket: first)
            try findings.expect(subject.holder, holds: [2], "after what it replaced was discarded")
            guard let second = try subject.holder.load(.unlocked)?.ticket else { return findings.expect(false, "nothing is held") }
            findings.expect(first != second, "two secrets have the same ticket")
            subject.other.discard(.unlocked, ticket: .max)
            try findings.expect(subject.holder, holds: [2], "after a ticket that never was")
            subject.other.discard(.unlocked, ticket: second)
            for holder in [subject.holder, subject.other] { try findings.expect(holder, holds: nil, "after it was discarded") }
        },
        KeyHolderContract("What is not used for its time is gone; without one it stays") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], in: .unlocked, timeoutSeconds: 1)
            try subject.holder.hold([2], in: .firstUnlock, timeoutSeconds: nil)
            subject.advanceTime(1)
            for holder in [subject.holder, subject.other] {
                try findings.expect(holder, holds: nil, in: .unlocked, "after its time")
                try findings.expect(holder, holds: [2], in: .firstUnlock, "though it has no time")
            }
            try subject.holder.hold([3], in: .unlocked, timeoutSeconds: nil)
            try findings.expect(subject.other, holds: [3], in: .unlocked, "where another's time was up")
        },
        KeyHolderContract("A replacement has a time of its own") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], in: .unlocked, timeoutSeconds: 1)
            try subject.holder.hold([2], in: .unlocked, timeoutSeconds: nil)
            try subject.holder.hold([3], in: .firstUnlock, timeoutSeconds: nil)
            try subject.holder.hold([4], in: .firstUnlock, timeoutSeconds: 1)
            subject.advanceTime(1)
            try findings.expect(subject.holder, holds: [2], in: .unlocked, "after the time of what it replaced")
            try findings.expect(subject.holder, holds: nil, in: .firstUnlock, "after its time, though what it replaced had none")
        },
        KeyHolderContract("What is held for two generations of the keybag lies side by side, and is removed together") {
            subject, findings throws(KeychainFailure) in
            let (older, newer) = (
                subject.holder.forKeybag(KeybagIdentity(generation: 7)), subject.other.forKeybag(KeybagIdentity(generation: 8))
            )
            try older.hold([7], timeoutSeconds: nil)
            try newer.hold([8], timeoutSeconds: nil)
            try findings.expect(older, holds: [7], "beside a newer one")
            try findings.expect(newer, holds: [8], "beside an older one")
            try findings.expect(
                subject.other.forKeybag(KeybagIdentity(generation: 7)), holds: [7], "for another holder of the same generation")
            try findings.expect(older.forKeybag(KeybagIdentity(generation: 6)), holds: nil, "for a generation that nothing is held for")
            try newer.removeOlder(.unlocked)
            try findings.expect(older, holds: nil, "after what is older was removed")
            try findings.expect(newer, holds: [8], "after what is older was removed")
            try older.hold([7, 7], timeoutSeconds: nil)
            try older.remove(.unlocked)
            for holder in [older, newer] { try findings.expect(holder, holds: nil, "after the slot was emptied") }
        },
        KeyHolderContract("Two keybags of one generation have a place each, until the slot is emptied") {
            subject, findings throws(KeychainFailure) in
            let (one, two) = (KeybagIdentity(generation: 7, tag: 1), KeybagIdentity(generation: 7, tag: 2))
            try subject.holder.forKeybag(one).hold([1], timeoutSeconds: nil)
            try subject.other.forKeybag(two).hold([2], timeoutSeconds: nil)
            try findings.expect(subject.other.forKeybag(one), holds: [1], "beside another keybag of its generation")
            try subject.holder.forKeybag(one).removeOlder(.unlocked)
            try findings.expect(subject.holder.forKeybag(two), holds: [2], "though another of its generation removed what is older")
            try subject.holder.remove(.unlocked)
            for mark in [one, two] { try findings.expect(subject.other.forKeybag(mark), holds: nil, "after the slot was emptied") }
        },
        KeyHolderContract("What is held before a lock is not given out after it, whoever locks") {
            subject, findings throws(KeychainFailure) in
            let held = KeyHolderContract.lockEpoch
            for slot in KeyHolderSlot.allCases {
                try subject.holder.hold([1], in: slot, timeoutSeconds: nil, lockEpoch: LockEpoch(rawValue: held.rawValue - 1))
            }
            try findings.expect(subject.other, holds: nil, in: .unlocked, "held before the store was locked")
            try findings.expect(subject.other, holds: [1], in: .firstUnlock, "though the lock left that open")
        },
        KeyHolderContract("Looking is no use: it does not make anything last longer") { subject, findings throws(KeychainFailure) in
            try subject.holder.hold([1], timeoutSeconds: 2)
            for _ in 1...2 {
                subject.advanceTime(1)
                for holder in [subject.holder, subject.other] { _ = try holder.load(.unlocked, for: .inspection) }
            }
            subject.advanceTime(1)
            try findings.expect(subject.holder, holds: nil, "after its time, in which it was only looked at")
        },
    ]
}

extension KeyHolder {
    /// With bytes that need no protection.
    package func hold(
        _ bytes: [UInt8], in slot: KeyHolderSlot = .unlocked, timeoutSeconds: UInt32?, lockEpoch: LockEpoch = KeyHolderContract.lockEpoch
    ) throws(KeychainFailure) {
        let secret = try unsafe SecretBytes(byteCount: bytes.count) { buffer in
            // As many bytes as the buffer has.
            unsafe buffer.copyBytes(from: bytes)
        }
        try hold(secret, in: slot, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch)
    }

    package func load(_ slot: KeyHolderSlot) throws(KeychainFailure) -> HeldSecret? { try load(slot, for: .use) }

    package func bytes(in slot: KeyHolderSlot) throws(KeychainFailure) -> [UInt8]? {
        guard let held = try load(slot) else { return nil }
        // The bytes are copied within the closure, to be compared.
        return unsafe held.secret.withBytes { unsafe Array($0) }
    }
}
#endif
