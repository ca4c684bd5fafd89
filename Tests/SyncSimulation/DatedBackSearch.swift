// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// Lets removed owners, and accomplices that they admit, state what they please as if they had not been removed, and checks that no removed device
/// is a member again.
///
/// The exhaustive search has too few statements for it: an owner that removes two others, one of these that answers, and an accomplice are six.
package struct DatedBackSearch {
    package private(set) var caseCount = 0
    package private(set) var failures: [String] = []
    private let cipher = FakeCipher(seed: 1)
    private var random: SeededGenerator
    private var statements: [Statement] = []
    private var circle: CircleID?

    package init(seed: UInt64) { random = SeededGenerator(seed) }

    package mutating func run(scheduleCount: Int) {
        do {
            for schedule in 0..<scheduleCount where failures.isEmpty { try runSchedule(schedule) }
        } catch {
            failures.append("\(error)")
        }
    }

    private mutating func runSchedule(_ schedule: Int) throws {
        let ownerCount = try foundCircle()
        for _ in 0...random.below(3) {
            let members = members(below: ownerCount)
            guard let author = random.element(of: members), let subject = random.element(of: members), author != subject else { continue }
            try add(removal(of: subject), by: author, knowing: [statements.count - 1])
        }
        let knownCount = statements.count
        let removed = (0..<ownerCount).filter { roster.removed.contains(id($0)) }
        guard !removed.isEmpty else { return }
        caseCount += 1
        try dateBack(removed, ownerCount, knownCount)
        let back = removed.filter { roster.members[id($0)] != nil }
        if !back.isEmpty { failures.append("schedule \(schedule): the removed devices \(back) are members again") }
    }

    /// Founds a circle of three to five owners, each of which any earlier one admits; returns their number, and that of their statements.
    private mutating func foundCircle() throws -> Int {
        let founding = try Statement(
            .found(.init(nonce: [UInt8](repeating: 0, count: 32), keys: keys(0).publicKeys)), circle: nil, author: id(0), heads: [],
            keys: keys(0), cipher: cipher)
        statements = [founding]
        circle = founding.circle
        let ownerCount = 3 + random.below(3)
        for owner in 1..<ownerCount { try add(admission(of: owner), by: random.below(owner), knowing: [owner - 1]) }
        return ownerCount
    }

    private mutating func dateBack(_ removed: [Int], _ ownerCount: Int, _ knownCount: Int) throws {
        var authors = removed
        for _ in 0...random.below(4) {
            guard let author = random.element(of: authors) else { return }
            // Mostly what was stated before all removals, sometimes less or more.
            var heads: Set = [random.chance(0.7) ? ownerCount - 1 : random.below(knownCount)]
            if statements.count > knownCount, author >= ownerCount || random.chance(0.7) {
                heads.insert(author >= ownerCount ? statements.count - 1 : knownCount + random.below(statements.count - knownCount))
            }
            if random.chance(0.3) {
                let accomplice = ownerCount + authors.count - removed.count
                try add(admission(of: accomplice), by: author, knowing: heads)
                authors.append(accomplice)
            } else {
                try add(removal(of: random.below(ownerCount)), by: author, knowing: heads)
            }
        }
    }

    private var roster: Roster { Roster(statements, circle: statements[0].circle) }

    private func members(below ownerCount: Int) -> [Int] {
        let roster = roster
        return (0..<ownerCount).filter { roster.members[id($0)] != nil }
    }

    private func keys(_ device: Int) -> FakeDeviceKeys { FakeDeviceKeys(seed: [UInt8(device)]) }

    private func id(_ device: Int) -> DeviceID { DeviceID(of: keys(device).publicKeys, role: .owner, cipher: cipher) }

    private func admission(of device: Int) -> Statement.Body {
        .admit(.init(device: id(device), keys: keys(device).publicKeys, role: .owner, circleCode: nil))
    }

    private func removal(of device: Int) -> Statement.Body { .remove(.init(device: id(device), checkpoints: [])) }

    private mutating func add(_ body: Statement.Body, by author: Int, knowing heads: Set<Int>) throws {
        statements.append(
            try Statement(
                body, circle: circle, author: id(author), heads: heads.map { statements[$0].hash }.sorted(), keys: keys(author),
                cipher: cipher))
    }
}
