// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainSync
import KeychainTestSupport
import SyncCore
import Synchronization
import Testing

/// What the storage, and any program that can write to it, can do to real keychains: nothing is believed, lost, or undone.
///
/// The numbers are those of the attacks that the design names. A8 (keys boxed for others) is in `HostileKeyTests` and KeybagTests' `CircleTests`, A12 (one
/// ciphertext under two keys) in `HostileKeyTests`, A13 (false clocks) in `MergeTests` and the simulation, because these need members that cheat.
@Suite("Attacks on a shared folder", .timeLimit(.minutes(10)))
struct FolderAttackTests {
    @Test("An altered or cut object is not believed, and the true one is read once it is back (A1)", arguments: Damage.allCases)
    func altered(_ damage: Damage) async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "1")
        try await bench.run(bench.one)
        let before = try bench.files()
        for (name, content) in before { try bench.write(name, damage.apply(to: content)) }
        try await bench.run(bench.other)
        #expect(try bench.other.secret("a") == nil)
        for (name, content) in before { try bench.write(name, content) }
        try await bench.run(bench.other)
        #expect(try bench.other.secret("a") == "1")
    }

    enum Damage: CaseIterable {
        case flippedByte, flippedVersion, cut, empty, longer

        func apply(to content: Data) -> Data {
            var content = content
            switch self {
            case .flippedByte: content[content.count / 2] ^= 1
            case .flippedVersion: content[4] = 0
            case .cut: content.removeLast(content.count / 3)
            case .empty: content = Data()
            case .longer: content.append(7)
            }
            return content
        }
    }

    @Test("What the storage loses in the middle of a log is made up for by a device that has it (A2)")
    func lostBatch() async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "1")
        try await bench.run(bench.one)
        let first = Set(try bench.files("b").keys)
        try bench.one.put("b", "2")
        try await bench.run(bench.one)
        let second = Set(try bench.files("b").keys).subtracting(first)
        try bench.one.put("c", "3")
        try await bench.run(bench.one)
        try bench.remove(Array(second))
        try await bench.run(bench.other)
        #expect(try bench.secrets(bench.other, ["a", "b", "c"]) == ["1", nil, nil])
        // A device waits for at most an hour until it makes up for it: another one could be faster.
        bench.clock.advance(by: 3_600)
        try await bench.run(bench.one)
        bench.clock.advance(by: 3_600)
        try await bench.run(bench.one)
        try await bench.run(bench.other)
        #expect(try bench.secrets(bench.other, ["a", "b", "c"]) == ["1", "2", "3"])
    }

    @Test("A device that sees an old state keeps what it has, and takes what appears later (A3)")
    func withheld() async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "1")
        try bench.one.put("b", "1")
        try await bench.exchange()
        let before = try bench.files()
        try bench.one.put("a", "2")
        try bench.one.delete("b")
        try await bench.run(bench.one)
        let after = try bench.files()
        try bench.replace(by: before)
        try await bench.run(bench.other)
        #expect(try bench.secrets(bench.other, ["a", "b"]) == ["1", "1"])
        try bench.replace(by: after)
        try await bench.run(bench.other)
        #expect(try bench.secrets(bench.other, ["a", "b"]) == ["2", nil])
    }

    @Test("A folder that is rolled back undoes nothing, and the devices go on (A4)")
    func rolledBack() async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "1")
        try bench.one.put("b", "1")
        try await bench.exchange()
        let before = try bench.files()
        try bench.one.put("a", "2")
        try bench.other.delete("b")
        try await bench.exchange()
        try bench.replace(by: before)
        try await bench.exchange()
        for machine in bench.machines { #expect(try bench.secrets(machine, ["a", "b"]) == ["2", nil]) }
        try bench.one.put("c", "3")
        // What the folder has lost is made up for by a checkpoint.
        for _ in 1...3 {
            bench.clock.advance(by: 3_600)
            try await bench.exchange()
        }
        for machine in bench.machines { #expect(try bench.secrets(machine, ["a", "b", "c"]) == ["2", nil, "3"]) }
    }

    @Test("Two devices that are shown different folders keep both values once the folders are one again (A5)")
    func forked() async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "0")
        try bench.one.put("b", "0")
        try await bench.exchange()
        let before = try bench.files()
        try bench.one.put("a", "1")
        try bench.one.put("b", "1")
        try await bench.run(bench.one)
        let first = try bench.files()
        try bench.replace(by: before)
        try bench.other.put("a", "2")
        try bench.other.delete("b")
        try bench.other.put("c", "2")
        try await bench.run(bench.other)
        for (name, content) in first { try bench.write(name, content) }
        try await bench.exchange()
        for machine in bench.machines {
            #expect(try bench.secrets(machine, ["b", "c"]) == ["1", "2"])
            let conflicts = try await machine.use { try KeychainSync.conflicts() }
            #expect(conflicts.count == 1)
            #expect(Set(conflicts.flatMap(\.versions).map { $0.content?.secret }) == [Data("1".utf8), Data("2".utf8)])
        }
    }

    @Test("An object under another name is not believed (A6)", arguments: ["number", "log", "device", "circle"])
    func replayed(_ what: String) async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "1")
        try await bench.exchange()
        let old = try bench.files("b")
        try bench.one.put("a", "2")
        try await bench.exchange()
        let identifier = String(repeating: "0", count: 32)
        for (name, content) in old {
            var parts = name.split(separator: "/").map(String.init)
            switch what {
            case "number": parts[5] = "0000000000000009" + parts[5].dropFirst(16)
            case "log": parts[4] = identifier
            case "device": parts[3] = String(try #require(try bench.devices().first { $0 != parts[3] }))
            default: parts[1] = identifier
            }
            try bench.write(parts.joined(separator: "/"), content)
        }
        try await bench.exchange()
        for machine in bench.machines { #expect(try machine.secret("a") == "2") }
    }

    @Test("What a stranger states and writes in a circle of its own changes nothing in this one (A7, A8)")
    func stranger() async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "1")
        try await bench.exchange()
        let circle = try #require(try bench.files().keys.first).split(separator: "/")[1]
        let before = Set(try bench.files().keys)
        let stranger = try Machine("stranger", in: bench.directory.path)
        try stranger.found("stranger")
        try stranger.put("a", "666")
        try await bench.run(stranger)
        for (name, content) in try bench.files() where !before.contains(name) {
            var parts = name.split(separator: "/")
            parts[1] = circle
            try bench.write(parts.joined(separator: "/"), content)
        }
        try await bench.exchange()
        for machine in bench.machines {
            #expect(try machine.secret("a") == "1")
            #expect(try await machine.use { try KeychainSync.devices() }.count == 2)
        }
    }

    @Test("Parts of two objects make no third one (A10)", arguments: [100, 200, 300])
    func spliced(_ position: Int) async throws {
        let bench = try await AttackedFolder()
        let before = try bench.files("b")
        try bench.one.put("a", "1")
        try await bench.run(bench.one)
        try bench.one.put("a", "2")
        try await bench.run(bench.one)
        let batches = try bench.files("b").filter { before[$0.key] == nil }.sorted { $0.key < $1.key }
        try #require(batches.count == 2)
        try bench.write(batches[1].key, batches[0].value.prefix(position) + batches[1].value.dropFirst(position))
        try await bench.run(bench.other)
        #expect(try bench.other.secret("a") == "1")
    }

    @Test("A folder whose files are deleted deletes nothing, and gets everything again (A11)")
    func deleted() async throws {
        let bench = try await AttackedFolder()
        for number in 1...20 { try bench.one.put("\(number)", "1") }
        try await bench.exchange()
        try bench.remove(Array(try bench.files().keys))
        try await bench.exchange()
        for machine in bench.machines { #expect(try (1...20).allSatisfy { try machine.secret("\($0)") == "1" }) }
        for _ in 1...3 {
            bench.clock.advance(by: 3_600)
            try await bench.exchange()
        }
        let third = try Machine("third", in: bench.directory.path)
        try await third.join(bench.one, as: "lone-starr")
        for machine in [bench.one, third] { try await bench.run(machine) }
        #expect(try (1...20).allSatisfy { try third.secret("\($0)") == "1" })
    }

    @Test("A copied machine and its original keep what either has stored (A14)")
    func copiedMachine() async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "0")
        try await bench.exchange()
        try FileManager.default.copyItem(atPath: bench.other.home, toPath: bench.other.home + "-copy")
        let copy = try Machine("other-copy", in: bench.directory.path)
        try bench.other.put("b", "1")
        try copy.put("c", "2")
        try bench.other.put("a", "1")
        try copy.put("a", "2")
        for _ in 1...2 {
            for machine in bench.machines + [copy] { try await bench.run(machine) }
        }
        for machine in bench.machines + [copy] {
            #expect(try bench.secrets(machine, ["b", "c"]) == ["1", "2"])
            let conflicts = try await machine.use { try KeychainSync.conflicts() }
            #expect(Set(conflicts.flatMap(\.versions).map { $0.content?.secret }) == [Data("1".utf8), Data("2".utf8)])
        }
    }

    @Test("What a removed device writes, from which the folder hides its removal, is not read, and it reads nothing newer (A15)")
    func removed() async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "1")
        try await bench.exchange()
        let before = try bench.files()
        let device = try #require(try await bench.one.use { try KeychainSync.devices() }.first { !$0.isThisDevice })
        _ = try await bench.one.use { try await KeychainSync.remove(device.id, on: bench.storage) }
        try bench.one.put("b", "2")
        try await bench.run(bench.one)
        let after = try bench.files()
        let statements = Set(try bench.files("m").keys).subtracting(before.keys)
        try bench.remove(Array(statements))
        try bench.other.put("a", "666")
        try await bench.run(bench.other)
        #expect(try bench.other.secret("b") == nil)
        for (name, content) in after { try bench.write(name, content) }
        try await bench.run(bench.one)
        #expect(try bench.secrets(bench.one, ["a", "b"]) == ["1", "2"])
    }

    @Test("A device that joins while the folder shows an old state has the newest one later, and undoes nothing (A16)")
    func joinsOldState() async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "1")
        try bench.one.put("b", "1")
        try await bench.exchange()
        let old = try bench.files()
        try bench.one.put("a", "2")
        try bench.one.delete("b")
        try await bench.exchange()
        let newest = try bench.files()
        let third = try Machine("third", in: bench.directory.path)
        try await third.join(bench.one, as: "lone-starr")
        try bench.replace(by: old)
        try await bench.run(third)
        try third.put("c", "3")
        try await bench.run(third)
        for (name, content) in newest { try bench.write(name, content) }
        for _ in 1...2 {
            for machine in bench.machines + [third] { try await bench.run(machine) }
        }
        for machine in bench.machines + [third] { #expect(try bench.secrets(machine, ["a", "b", "c"]) == ["2", nil, "3"]) }
    }

    @Test("Thousands of foreign names, and a file of a gibibyte with the name of an object, stop nothing (A17)")
    func bombs() async throws {
        let bench = try await AttackedFolder()
        try bench.one.put("a", "1")
        try await bench.run(bench.one)
        let (batch, _) = try #require(try bench.files("b").first)
        let folder = batch.split(separator: "/").dropLast().joined(separator: "/")
        for number in 0..<3_000 { try bench.write(folder + "/junk \(number).sync-conflict", Data()) }
        for digit in "0123456789abcdef" {
            let name = folder + "/0000000000000001-" + String(repeating: digit, count: 32)
            try bench.write(name, Data())
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: bench.storage.path + "/" + name))
            try file.truncate(atOffset: 1 << 30)
            try file.close()
        }
        try await bench.run(bench.other)
        #expect(try bench.other.secret("a") == "1")
    }
}

/// A circle of two machines, and the files of the folder that they share, which an attacker changes at will.
private struct AttackedFolder {
    let directory: TemporaryDirectory
    let one: Machine
    let other: Machine
    let storage: FolderStorage
    let clock = ManualClock()

    var machines: [Machine] { [one, other] }

    init() async throws {
        directory = try TemporaryDirectory(inMemory: true)
        (one, other) = (try Machine("one", in: directory.path), try Machine("other", in: directory.path))
        try one.found("spaceball-one")
        try await other.join(one, as: "eagle-5")
        storage = try await FolderStorage.make(path: directory.path + "/shared", outside: [one.home, other.home], options: FolderOptions())
        try await exchange()
    }

    func run(_ machine: Machine) async throws { try await SyncAgent(machine.keychain, on: storage, clock: clock).runUntilQuiet() }

    func exchange() async throws {
        for machine in [one, other, one, other] { try await run(machine) }
    }

    func secrets(_ machine: Machine, _ accounts: [String]) throws -> [String?] { try accounts.map { try machine.secret($0) } }

    // Files

    /// The files of all circles, or of one kind, with their contents, by name below the folder.
    func files(_ kind: String? = nil) throws -> [String: Data] {
        var files: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: storage.path) {
            let parts = name.split(separator: "/")
            guard parts.count > 3, kind == nil || parts[2] == kind ?? "" else { continue }
            guard let content = FileManager.default.contents(atPath: storage.path + "/" + name) else { continue }
            files[name] = content
        }
        return files
    }

    /// The devices that have a folder of batches.
    func devices() throws -> Set<String> { Set(try files("b").keys.map { String($0.split(separator: "/")[3]) }) }

    func write(_ name: String, _ content: Data) throws {
        let path = storage.path + "/" + name
        try FileManager.default.createDirectory(
            atPath: URL(fileURLWithPath: path).deletingLastPathComponent().path, withIntermediateDirectories: true)
        try content.write(to: URL(fileURLWithPath: path))
    }

    func remove(_ names: [String]) throws {
        for name in names { try FileManager.default.removeItem(atPath: storage.path + "/" + name) }
    }

    func replace(by files: [String: Data]) throws {
        try remove(Array(try self.files().keys))
        for (name, content) in files { try write(name, content) }
    }
}

/// A clock that a test moves.
private final class ManualClock: WallClock {
    private let seconds = Mutex(800_000_000.0)

    func now() -> Double { seconds.withLock { $0 } }

    func advance(by difference: Double) { seconds.withLock { $0 += difference } }
}
