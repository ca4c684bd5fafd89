// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

/// A circle whose statements a test makes by hand.
struct RosterBench {
    let cipher = FakeCipher(seed: 1)
    private var roles: [Int: DeviceRole] = [:]
    private(set) var statements: [Statement] = []
    private(set) var circle = CircleID(Identifier128(high: 0, low: 0))

    /// Creates a circle founded by device 0.
    init() throws {
        statements = [
            try Statement(
                .found(.init(nonce: [UInt8](repeating: 0, count: 32), keys: keys(0).publicKeys)), circle: nil, author: id(0), heads: [],
                keys: keys(0), cipher: cipher)
        ]
        circle = statements[0].circle
    }

    func keys(_ device: Int) -> FakeDeviceKeys { FakeDeviceKeys(seed: [UInt8(device)]) }
    /// The identifier of a device that was admitted as an owner, or in the role of `admit`.
    func id(_ device: Int) -> DeviceID { DeviceID(of: keys(device).publicKeys, role: roles[device] ?? .owner, cipher: cipher) }

    /// Adds a statement and returns its number.
    ///
    /// `known` are the numbers of the newest statements that its author counts.
    @discardableResult
    mutating func add(_ body: Statement.Body, by author: Int, knowing known: [Int]) throws -> Int {
        let heads = known.map { statements[$0].hash }.sorted()
        statements.append(
            try Statement(body, circle: circle, author: id(author), heads: heads, keys: keys(author), cipher: cipher))
        return statements.count - 1
    }

    @discardableResult
    mutating func admit(_ device: Int, _ role: DeviceRole = .owner, by author: Int, knowing known: [Int]) throws -> Int {
        roles[device] = role
        return try add(
            .admit(.init(device: id(device), keys: keys(device).publicKeys, role: role, circleCode: nil)), by: author, knowing: known)
    }

    /// Admits a recovery kit.
    mutating func admitKit(_ kit: Int, by author: Int, knowing known: [Int]) throws -> Int {
        roles[kit] = .recoveryKit
        let code = [UInt8](repeating: 7, count: 32)
        return try add(
            .admit(.init(device: id(kit), keys: keys(kit).publicKeys, role: .recoveryKit, circleCode: code)), by: author, knowing: known)
    }

    @discardableResult
    mutating func remove(_ device: Int, by author: Int, knowing known: [Int]) throws -> Int {
        try add(.remove(.init(device: id(device), checkpoints: [])), by: author, knowing: known)
    }

    var members: Set<Int> {
        let roster = Roster(statements, circle: circle)
        return Set((0..<10).filter { roster.members[id($0)] != nil })
    }
}

@Suite("The roster")
struct RosterTests {
    @Test("Owners admit and remove; writers and readers do not")
    func authority() throws {
        var bench = try RosterBench()
        let owner = try bench.admit(1, by: 0, knowing: [0])
        let writer = try bench.admit(2, .writer, by: 1, knowing: [owner])
        try bench.admit(3, by: 2, knowing: [writer])
        try bench.remove(0, by: 2, knowing: [writer])
        #expect(bench.members == [0, 1, 2])
        try bench.remove(0, by: 1, knowing: [writer])
        #expect(bench.members == [1, 2])
    }

    @Test("A removed device is never admitted again")
    func noReadmission() throws {
        var bench = try RosterBench()
        let admission = try bench.admit(1, by: 0, knowing: [0])
        let removal = try bench.remove(1, by: 0, knowing: [admission])
        try bench.admit(1, by: 0, knowing: [removal])
        #expect(bench.members == [0])
    }

    @Test("A back-dated removal of an owner brings back no device that this owner has removed")
    func backdatedRemoval() throws {
        var bench = try RosterBench()
        let thief = try bench.admit(1, by: 0, knowing: [0])
        let other = try bench.admit(2, by: 0, knowing: [thief])
        let removal = try bench.remove(1, by: 0, knowing: [other])
        try bench.remove(2, by: 0, knowing: [removal])
        #expect(bench.members == [0])
        try bench.remove(0, by: 1, knowing: [other])
        #expect(bench.members == [])
    }

    @Test("An accomplice that a removed owner admits with an earlier date brings back no device", arguments: [1, 2])
    func accompliceOfRemovedOwner(generations: Int) throws {
        var bench = try RosterBench()
        let owner = try bench.admit(1, by: 0, knowing: [0])
        let other = try bench.admit(2, by: 0, knowing: [owner])
        let writer = try bench.admit(3, .writer, by: 0, knowing: [other])
        let removal = try bench.remove(1, by: 0, knowing: [writer])
        try bench.remove(2, by: 0, knowing: [removal])
        var admission = writer
        for accomplice in 4..<(4 + generations) {
            admission = try bench.admit(accomplice, by: accomplice == 4 ? 1 : accomplice - 1, knowing: [admission])
        }
        // It can remove the remover, as the removed owner itself can.
        try bench.remove(0, by: 3 + generations, knowing: [admission])
        #expect(bench.members == [3])
    }

    @Test("Removals that make void the admissions of each other's authors all stand", arguments: [false, true])
    func removalsOfSponsors(hasAccomplice: Bool) throws {
        var bench = try RosterBench()
        let thief = try bench.admit(1, by: 0, knowing: [0])
        let owner = try bench.admit(2, by: 0, knowing: [thief])
        try bench.remove(1, by: 2, knowing: [owner])
        #expect(bench.members == [0, 2])
        let admission = hasAccomplice ? try bench.admit(3, by: 1, knowing: [thief]) : thief
        try bench.remove(0, by: hasAccomplice ? 3 : 1, knowing: [admission])
        #expect(bench.members == [])
    }

    @Test("Removals of two thieves by two owners stand although the thieves admit one accomplice, which removes both owners")
    func accompliceOfTwo() throws {
        var bench = try RosterBench()
        var last = 0
        for device in 1...4 { last = try bench.admit(device, by: 0, knowing: [last]) }
        try bench.remove(3, by: 1, knowing: [last])
        try bench.remove(4, by: 2, knowing: [last])
        let admissions = try [3, 4].map { try bench.admit(5, by: $0, knowing: [last]) }
        let removal = try bench.remove(1, by: 5, knowing: admissions)
        try bench.remove(2, by: 5, knowing: [removal])
        #expect(bench.members == [0])
    }

    /// The owner 0 removes the owners 2 and 1; 1 removes 0 as if it did not know, and later admits an accomplice, which removes 0 too.
    @Test("A removed owner that removes its remover brings no other one back by an accomplice", arguments: RemovalWitness.allCases)
    func answerAndAccomplice(witness: RemovalWitness) throws {
        var bench = try RosterBench()
        let thief = try bench.admit(1, by: 0, knowing: [0])
        let other = try bench.admit(2, by: 0, knowing: [thief])
        let all = try bench.admit(3, witness == .none ? .reader : .writer, by: 0, knowing: [other])
        let removal = try bench.remove(1, by: 0, knowing: [try bench.remove(2, by: 0, knowing: [all])])
        if witness == .ofRemoval { try bench.add(.witness, by: 3, knowing: [removal]) }
        let answer = try bench.remove(0, by: 1, knowing: [all])
        if witness == .ofBoth { try bench.add(.witness, by: 3, knowing: [removal, answer]) }
        let accomplice = try bench.admit(4, by: 1, knowing: [all])
        try bench.remove(0, by: 4, knowing: [accomplice])
        #expect(bench.members.isDisjoint(with: [1, 2, 4]))
    }

    /// What a remaining writer lists.
    enum RemovalWitness: CaseIterable { case none, ofRemoval, ofBoth }

    /// The owner 1 removes 3, then 0 removes 2, which removes 0 and 1 as if it did not know.
    @Test("A removed owner that removes its remover and another owner does not bring back whom this owner removed")
    func answerAndOtherRemoval() throws {
        var bench = try RosterBench()
        let first = try bench.admit(1, by: 0, knowing: [0])
        let thief = try bench.admit(2, by: 0, knowing: [first])
        let other = try bench.admit(3, by: 0, knowing: [thief])
        let all = try bench.admit(4, .reader, by: 0, knowing: [other])
        try bench.remove(2, by: 0, knowing: [try bench.remove(3, by: 1, knowing: [all])])
        try bench.remove(0, by: 2, knowing: [all])
        try bench.remove(1, by: 2, knowing: [all])
        #expect(bench.members.isDisjoint(with: [2, 3]))
    }

    @Test("Nothing that removed owners and their accomplices state as if they were members brings a removed device back")
    func datedBack() {
        var search = DatedBackSearch(seed: 1)
        search.run(scheduleCount: 2_000)
        #expect(search.failures.isEmpty)
        #expect(search.caseCount > 1_000)
    }

    @Test("Who lists a removal by a removed owner testifies for nothing that this owner knew")
    func listedRemoval() throws {
        var bench = try RosterBench()
        let owner = try bench.admit(1, by: 0, knowing: [0])
        let writer = try bench.admit(3, .writer, by: 0, knowing: [owner])
        let removal = try bench.remove(1, by: 0, knowing: [writer])
        let admission = try bench.admit(4, by: 1, knowing: [writer])
        let answer = try bench.remove(0, by: 1, knowing: [admission])
        #expect(bench.members == [3])
        try bench.add(.witness, by: 3, knowing: [removal, answer])
        #expect(bench.members == [3])
    }

    @Test("Removals that make each other void all stand: a stolen founder does not come back (C4)")
    func mutualRemoval() throws {
        var bench = try RosterBench()
        let second = try bench.admit(1, by: 0, knowing: [0])
        let third = try bench.admit(2, by: 1, knowing: [second])
        try bench.remove(0, by: 1, knowing: [third])
        // A year later the thief dates back a removal that lists nothing newer.
        try bench.remove(1, by: 0, knowing: [second])
        #expect(!bench.members.contains(0))
        #expect(!bench.members.contains(1))
    }

    @Test("What a removed device states later is void unless the removal lists it")
    func laterStatementsAreVoid() throws {
        var bench = try RosterBench()
        let second = try bench.admit(1, by: 0, knowing: [0])
        let third = try bench.admit(2, by: 0, knowing: [second])
        try bench.remove(0, by: 1, knowing: [third])
        let stranger = try bench.admit(3, by: 0, knowing: [third])
        try bench.remove(2, by: 3, knowing: [stranger])
        #expect(bench.members == [1, 2])
    }

    @Test("What a remaining device had when it learned of the removal counts: hiding an admission undoes no removal (C5)")
    func witness() throws {
        var bench = try RosterBench()
        let owner = try bench.admit(1, by: 0, knowing: [0])
        let other = try bench.admit(2, by: 1, knowing: [owner])
        let fourth = try bench.admit(4, by: 1, knowing: [other])
        let joiner = try bench.admit(3, by: 0, knowing: [fourth])
        let removal = try bench.remove(2, by: 3, knowing: [joiner])
        // Device 1 retires the founder without having seen the admission and the removal that followed it.
        try bench.remove(0, by: 1, knowing: [fourth])
        #expect(bench.members == [1, 2, 4])
        // Device 4 had both.
        try bench.add(.witness, by: 4, knowing: [removal])
        #expect(bench.members == [1, 3, 4])
    }

    @Test("A statement whose predecessors are missing is left out, and a member's missing predecessor is reported")
    func missingStatement() throws {
        var bench = try RosterBench()
        let owner = try bench.admit(1, by: 0, knowing: [0])
        let removal = try bench.remove(1, by: 0, knowing: [owner])
        try bench.admit(2, by: 0, knowing: [removal])
        let hidden = bench.statements[removal]
        let roster = Roster(bench.statements.filter { $0.hash != hidden.hash }, circle: bench.circle)
        #expect(roster.members.count == 2)
        #expect(roster.members[bench.id(2)] == nil)
        #expect(roster.missing == [hidden.hash])
    }

    @Test("Removals are judged among many statements, of which some have no predecessors")
    func manyStatements() throws {
        var bench = try RosterBench()
        let owner = try bench.admit(1, by: 0, knowing: [0])
        let other = try bench.admit(2, by: 0, knowing: [owner])
        let hidden = try bench.add(.witness, by: 1, knowing: [other])
        for number in 0..<150 {
            let key = LaneKeyID(Identifier128(high: 0, low: UInt64(number)))
            let body = Statement.Body.rekey(.init(lane: .whenUnlocked, generation: 1, key: key, boxes: [], olderKeys: []))
            try bench.add(body, by: 1, knowing: [number % 2 == 0 ? hidden : other])
        }
        let stranger = try bench.admit(3, by: 1, knowing: [other])
        try bench.remove(1, by: 2, knowing: [other])
        #expect(bench.members == [0, 2])
        let statements = bench.statements.filter { $0.hash != bench.statements[hidden].hash }
        var roster = Roster(statements, circle: bench.circle)
        #expect(roster.members.count == 2)
        #expect(roster.counted.count == 4)
        try bench.add(.witness, by: 0, knowing: [stranger])
        roster = Roster(bench.statements.filter { $0.hash != bench.statements[hidden].hash }, circle: bench.circle)
        #expect(roster.members[bench.id(3)] != nil)
    }

    /// The accomplice does not list what the kit has stated.
    @Test("An accomplice that removes the recovery kit does not bring back whom the kit has removed")
    func removalOfKit() throws {
        var bench = try RosterBench()
        let kit = try bench.admitKit(9, by: 0, knowing: [0])
        let accomplice = try bench.admit(1, by: 0, knowing: [kit])
        let thief = try bench.admit(2, by: 0, knowing: [accomplice])
        try bench.remove(2, by: 9, knowing: [thief])
        try bench.remove(9, by: 1, knowing: [thief])
        #expect(bench.members == [0, 1])
    }

    @Test("What a recovery kit states is void with its admission")
    func voidKit() throws {
        var bench = try RosterBench()
        let thief = try bench.admit(1, by: 0, knowing: [0])
        let other = try bench.admit(2, by: 0, knowing: [thief])
        try bench.remove(1, by: 0, knowing: [other])
        let kit = try bench.admitKit(9, by: 1, knowing: [other])
        // It can remove the remover, as the removed owner itself can, and is no member.
        try bench.remove(0, by: 9, knowing: [kit])
        #expect(bench.members == [2])
    }

    @Test("A lane key is usable if every member has it and no other device; its generation is at most one higher")
    func laneKeys() throws {
        var bench = try RosterBench()
        let owner = try bench.admit(1, by: 0, knowing: [0])
        func rekeying(_ generation: UInt64, _ key: UInt64, _ devices: [Int]) -> Statement.Body {
            .rekey(
                .init(
                    lane: .whenUnlocked, generation: generation, key: LaneKeyID(Identifier128(high: 0, low: key)),
                    boxes: devices.map { .init(device: bench.id($0), bytes: [UInt8](repeating: 0, count: 80)) }, olderKeys: []))
        }
        let first = try bench.add(rekeying(1, 1, [0, 1]), by: 0, knowing: [owner])
        try bench.add(rekeying(9, 2, [0, 1]), by: 1, knowing: [first])
        var roster = Roster(bench.statements, circle: bench.circle)
        #expect(roster.laneKeys.map(\.generation) == [1])
        #expect(roster.laneKeys[0].isUsable(roster))
        try bench.remove(1, by: 0, knowing: [first])
        roster = Roster(bench.statements, circle: bench.circle)
        #expect(!roster.laneKeys[0].isUsable(roster))
    }

    @Test("Every set of at most five statements of four devices has one roster, in whichever order they come")
    func exhaustive() {
        var search = ExhaustiveRoster(statementCount: 4, ordersOfLargeSets: 24)
        search.run()
        #expect(search.failures.isEmpty)
        #expect(search.setCount > 20)
    }
}
