// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// What a contestant does with changes that two devices made without knowing of each other: found out by making them.
struct SyncConflicts {
    private static let (key, anotherKey) = (7, 150)
    private static let (first, second) = (SyncSecret.value("from-one"), SyncSecret.value("from-other"))

    private let peer: any SyncPeer
    private let snapshot: SyncSnapshot

    init(_ peer: any SyncPeer, snapshot: SyncSnapshot) {
        (self.peer, self.snapshot) = (peer, snapshot)
    }

    func answers() throws -> [SyncAnswer] {
        var answers: [SyncAnswer] = []
        for question in [SyncAnswer.Question.editedInOneSecond, .editedSecondsApart, .deletedAndEdited] {
            try makeConflict(question)
            answers.append(SyncAnswer(peer.contestant, question, try outcome(question)))
            if question == .editedInOneSecond {
                answers.append(SyncAnswer(peer.contestant, .otherEntryMeanwhile, try outcomeOfAnotherEntry()))
            }
        }
        try snapshot.restore()
        return answers
    }

    /// Changes one entry on both devices.
    private func makeConflict(_ question: SyncAnswer.Question) throws {
        for _ in 0..<10 {
            try snapshot.restore()
            if question == .editedInOneSecond { Self.waitForNextSecond() }
            let start = Date().timeIntervalSince1970.rounded(.down)
            if question == .deletedAndEdited {
                try peer.remove(Self.key, on: .one)
            } else {
                try peer.set(Self.key, to: Self.first, on: .one)
            }
            if question != .editedInOneSecond { Thread.sleep(forTimeInterval: 2) }
            try peer.set(Self.key, to: Self.second, on: .other)
            if question != .editedInOneSecond || Date().timeIntervalSince1970.rounded(.down) == start { return }
        }
        throw Peer.Unavailable(reason: "two edits take longer than a second")
    }

    /// Lets both devices synchronize as if unattended, and looks at what they have.
    private func outcome(_ question: SyncAnswer.Question) throws -> SyncAnswer.Outcome {
        let ending = exchange()
        if ending.isBlocked { return .blocked }
        let visible = try SyncDevice.allCases.map { try peer.value(Self.key, on: $0) }
        guard visible[0] == visible[1] else { return ending.isWarned ? .devicesDifferWithWarning : .devicesDiffer }
        let kept = try SyncDevice.allCases.map { try peer.otherValues(Self.key, on: $0) }
        func isKept(_ value: String) -> Bool { visible[0] == value || kept.allSatisfy { $0.contains(.version(value)) } }
        let lost: SyncAnswer.Outcome = ending.isWarned ? .oneLostWithWarning : .oneLostSilently
        if question != .deletedAndEdited { return isKept(Self.first) && isKept(Self.second) ? .bothKept : lost }
        if visible[0] == Self.second { return .editVisible }
        return kept.allSatisfy { $0.contains(.recycled(Self.second)) } ? .editInRecycleBin : lost
    }

    /// Changes another entry on each device in turn.
    private func outcomeOfAnotherEntry() throws -> SyncAnswer.Outcome {
        for (writer, reader) in [(SyncDevice.one, SyncDevice.other), (.other, .one)] {
            let value = SyncSecret.value("meanwhile-\(writer)")
            // A program may refuse to write while the conflict exists.
            guard (try? peer.set(Self.anotherKey, to: value, on: writer)) != nil else { return .blocked }
            _ = exchange()
            guard try peer.value(Self.anotherKey, on: reader) == value else { return .blocked }
        }
        return .arrives
    }

    /// Synchronizes each device twice.
    ///
    /// A device is blocked if it fails in the last round too.
    private func exchange() -> (isBlocked: Bool, isWarned: Bool) {
        var (isBlocked, isWarned) = (false, false)
        for round in 0..<2 {
            for device in SyncDevice.allCases {
                do {
                    if try peer.synchronize(device) { isWarned = true }
                    if round == 1, try peer.isWaitingForPerson(device) { isBlocked = true }
                } catch {
                    if round == 1 { isBlocked = true }
                }
            }
        }
        return (isBlocked, isWarned)
    }

    private static func waitForNextSecond() {
        let now = Date().timeIntervalSince1970
        Thread.sleep(forTimeInterval: now.rounded(.up) - now + 0.01)
    }
}
