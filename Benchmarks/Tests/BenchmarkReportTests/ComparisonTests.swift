// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation
import Testing

struct ComparisonTests {
    private let comparison = ComparisonFixture.comparison()

    @Test("A report encoded as JSON decodes to an equal report")
    func roundTrip() throws {
        #expect(try Comparison(json: comparison.json()) == comparison)
    }

    @Test("The JSON file has the documented keys")
    func names() throws {
        let object = try #require(JSONSerialization.jsonObject(with: comparison.json()) as? [String: Any])
        #expect(object["format"] as? Int == 1)
        #expect(object["date"] as? String == "2027-01-15T08:00:00Z")
        let machine = try #require(object["machine"] as? [String: Any])
        let names: Set = ["processor", "coreCount", "memoryGigabytes", "kernel", "operatingSystem", "fileSystem"]
        #expect(Set(machine.keys) == names)
        let rows = try #require(object["rows"] as? [[String: Any]])
        let latency = try #require(rows.first?["latency"] as? [String: Any])
        #expect(Set(latency.keys) == ["medianMicroseconds", "p99Microseconds", "sampleCount"])
    }

    @Test("A decoded report has the same verdicts")
    func judgedAnew() {
        #expect(comparison.judgedAnew() == comparison)
    }

    @Test("Growth between sizes is relative to the append, so a slower disk does not count as growth")
    func growth() throws {
        let goal = try #require(comparison.goals.first { $0.name == "set, overwrite: 100,000 items / 1,000, each / its append" })
        // 600 by 500 there; eight times both here.
        #expect(goal.measured == 1)
    }

    @Test("A file of another format is rejected")
    func otherFormat() throws {
        let text = String(decoding: try comparison.json(), as: UTF8.self)
        let newer = text.replacingOccurrences(of: "\"format\" : 1", with: "\"format\" : 2")
        #expect(newer != text)
        #expect(throws: (any Error).self) { try Comparison(json: Data(newer.utf8)) }
    }

    @Test("A ratio is relative to the same operation of Valet in one undisturbed thread")
    func ratios() throws {
        func ratio(
            _ contestant: Contestant, _ operation: KeychainOperation, _ circumstance: Circumstance, _ itemCount: Int = 1_000
        ) throws -> Double? {
            try #require(
                comparison.rows.first {
                    $0.contestant == contestant && $0.operation == operation
                        && $0.circumstance == circumstance && $0.itemCount == itemCount
                }
            ).ratioToValet
        }
        #expect(try ratio(.libsecret, .get, .alone) == 100)
        #expect(try ratio(.rawSQLite, .get, .alone) == 0.2)
        #expect(try ratio(.valet, .get, .besideWriter) == 1.5)
        #expect(try ratio(.valet, .get, .alone, 100_000) == 1)
        #expect(try ratio(.secretTool, .get, .wholeProcess) == 1.5)
        // Nothing of ours stands beside it.
        #expect(try ratio(.bareAppend, .setNew, .alone) == nil)
    }

    @Test("The figures determine whether a goal is met")
    func goals() throws {
        func goal(_ name: String) throws -> Goal { try #require(comparison.goals.first { $0.name == name }) }
        #expect(try goal("get / raw SQLite lookup").isMet == true)
        #expect(try goal("get / raw SQLite lookup").measured == 5)
        #expect(try goal("libsecret lookup / get").isMet == true)
        #expect(try goal("set, overwrite / append + fdatasync").measured == 1.2)
        #expect(try goal("set, overwrite: rate of 8 threads / of one").isMet == true)
        #expect(try goal("get: 100,000 items / 1,000").measured == 2)
        #expect(try goal("all keys of 10,000").isMet == false)
        #expect(try goal("all keys of 10,000").margin == 1.25)
        #expect(try goal("set, new key / append + fdatasync").isMet == nil)
    }

    @Test("A slower read misses its goal by the reported amount")
    func missed() throws {
        let slow = ComparisonFixture.comparison(getMicroseconds: 48)
        let goal = try #require(slow.goals.first { $0.name == "get / raw SQLite lookup" })
        #expect(goal.isMet == false)
        #expect(goal.margin == 2)
        #expect(ComparisonTable(slow).text.contains("MISSED by 2.00 x"))
    }

    @Test("The table has a line for each row, and names each absent peer with the reason")
    func table() {
        let lines = ComparisonTable(comparison).text.split(separator: "\n")
        #expect(lines.contains("Not here: pass: gpg is not installed"))
        #expect(lines.contains { $0.contains("4,000 (3.50 x one thread)") })
        #expect(lines.count { $0.hasPrefix("get ") && !$0.contains("/") && !$0.contains(":") } == 8)
    }
}
