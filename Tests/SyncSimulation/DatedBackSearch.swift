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
    /// The devices that are no owners.
    private var roles: [Int: DeviceRole] = [:]

    package init(seed: UInt64) { random = SeededGenerator(seed) }

    package mutating func run(scheduleCount: Int) {
        do {
            for isByAccomplice in [false, true] { try learnWithAnswer(isByAccomplice: isByAccomplice) }
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

    /// Lets a writer learn of removals together with the removed device's answer, and the remover be removed afterwards.
    ///
    /// Owner 1 removes 0 and 3. The writer learns of that together with a removal of 1 by 0, as if 0 did not know. Then owner 2, which has learned of
    /// nothing, removes 1; or an accomplice does, whose admission by 0 the writer had seen before.
    private mutating func learnWithAnswer(isByAccomplice: Bool) throws {
        let ownerCount = 4
        try foundCircle(ownerCount: ownerCount)
        let (writer, accomplice) = (ownerCount, ownerCount + 1)
        roles[writer] = .writer
        try add(admission(of: writer), by: 0, knowing: [ownerCount - 1])
        let before = statements.count - 1
        try add(removal(of: 0), by: 1, knowing: [before])
        try add(removal(of: 3), by: 1, knowing: [statements.count - 1])
        let removals = statements.count - 1
        if isByAccomplice { try add(admission(of: accomplice), by: 0, knowing: [before]) }
        let admission = statements.count - 1
        try add(removal(of: 1), by: 0, knowing: isByAccomplice ? [admission] : [before])
        let answer = statements.count - 1
        if isByAccomplice { try add(.witness, by: writer, knowing: [answer]) }
        try add(.witness, by: writer, knowing: [removals, statements.count - 1])
        try add(removal(of: 1), by: isByAccomplice ? accomplice : 2, knowing: isByAccomplice ? [admission] : [before])
        caseCount += 1
        for device in [0, 3] where roster.members[id(device)] != nil {
            failures.append("device \(device) is a member again, although a remaining writer had learned that it was removed")
        }
        roles = [:]
    }

    /// Founds a circle of three to five owners, each of which any earlier one admits; returns their number.
    private mutating func foundCircle() throws -> Int {
        let ownerCount = 3 + random.below(3)
        try foundCircle(ownerCount: ownerCount)
        return ownerCount
    }

    private mutating func foundCircle(ownerCount: Int) throws {
        let founding = try Statement(
            .found(.init(nonce: [UInt8](repeating: 0, count: 32), keys: keys(0).publicKeys)), circle: nil, author: id(0), heads: [],
            keys: keys(0), cipher: cipher)
        statements = [founding]
        circle = founding.circle
        for owner in 1..<ownerCount { try add(admission(of: owner), by: random.below(owner), knowing: [owner - 1]) }
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

    private func id(_ device: Int) -> DeviceID { DeviceID(of: keys(device).publicKeys, role: role(device), cipher: cipher) }

    private func role(_ device: Int) -> DeviceRole { roles[device] ?? .owner }

    private func admission(of device: Int) -> Statement.Body {
        .admit(.init(device: id(device), keys: keys(device).publicKeys, role: role(device), circleCode: nil))
    }

    private func removal(of device: Int) -> Statement.Body { .remove(.init(device: id(device), checkpoints: [])) }

    private mutating func add(_ body: Statement.Body, by author: Int, knowing heads: Set<Int>) throws {
        statements.append(
            try Statement(
                body, circle: circle, author: id(author), heads: heads.map { statements[$0].hash }.sorted(), keys: keys(author),
                cipher: cipher))
    }
}
