// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing
import Valet

@Suite("Many threads at once", .inMemoryKeychain(accessGroups: testAccessGroups))
struct ConcurrencyTests {
    @Test("All write one key: none fails, and one of the values is there, whole")
    func oneKey() async throws {
        let valet = try valet()
        let values = (0..<32).map { String(repeating: "\($0) ", count: 200) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for value in values { group.addTask { try valet.setString(value, forKey: "Skroob") } }
            try await group.waitForAll()
        }
        #expect(values.contains(try valet.string(forKey: "Skroob")))
        #expect(try RawItems.all().count == 1)
    }

    @Test("All write keys that are new at the same moment: none fails")
    func newKeys() async throws {
        let valet = try valet()
        for round in 0..<200 {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<4 { group.addTask { try valet.setString("\(writer)", forKey: "key \(round)") } }
                try await group.waitForAll()
            }
        }
        #expect(try valet.allKeys().count == 200)
    }

    @Test("While a value is written over and over, a reader always finds one")
    func neverAbsent() async throws {
        let valet = try valet()
        try valet.setString("0", forKey: "Skroob")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask { for round in 0..<50 { try valet.setString("\(writer) \(round)", forKey: "Skroob") } }
            }
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<100 {
                        let value = try valet.string(forKey: "Skroob")
                        let isThere = try valet.containsObject(forKey: "Skroob")
                        #expect(!value.isEmpty && isThere)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("Writers and removers of one key do not disturb each other")
    func writersAndRemovers() async throws {
        let valet = try valet()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask { for _ in 0..<50 { try valet.setString("\(task)", forKey: "Skroob") } }
                group.addTask { for _ in 0..<50 { try valet.removeObject(forKey: "Skroob") } }
            }
            try await group.waitForAll()
        }
        try valet.setString("12345", forKey: "Skroob")
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("Each writes a key of its own: all are there")
    func ownKeys() async throws {
        let valet = try valet()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<64 { group.addTask { try valet.setString("value \(index)", forKey: "key \(index)") } }
            try await group.waitForAll()
        }
        #expect(try valet.allKeys() == Set((0..<64).map { "key \($0)" }))
        for index in 0..<64 { #expect(try valet.string(forKey: "key \(index)") == "value \(index)") }
    }

    @Test("Two migrations of the same items: one does it all, the other changes nothing")
    func twoMigrations() async throws {
        let source = try valet("source")
        let destination = try valet("destination")
        for index in 0..<16 { try source.setString("value \(index)", forKey: "key \(index)") }
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<2 {
                group.addTask { (try? destination.migrateObjects(from: source, removeOnCompletion: false)) != nil }
            }
            return await group.reduce(into: [Bool]()) { $0.append($1) }
        }
        let keys = Set((0..<16).map { "key \($0)" })
        #expect(outcomes.filter { $0 }.count == 1)
        #expect(try source.allKeys() == keys)
        #expect(try destination.allKeys() == keys)
    }
}
