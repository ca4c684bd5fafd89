// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Testing

struct QuantityTests {
    @Test(
        "Numbers have three significant digits",
        arguments: [
            (0, "0"), (0.012_34, "0.0123"), (1, "1.00"), (1.234, "1.23"), (9.999, "10.0"), (12.34, "12.3"), (99.96, "100"), (123.4, "123"),
            (1_234.5, "1,235"), (1_234_567, "1,234,567"), (.infinity, "-"), (-2.5, "-2.50"),
        ])
    func short(value: Double, text: String) {
        #expect(Quantity.short(value) == text)
    }

    @Test("Times have the unit with the shortest text")
    func times() {
        #expect(Quantity.time(microseconds: 0.9) == "900 ns")
        #expect(Quantity.time(microseconds: 21.04) == "21.0 µs")
        #expect(Quantity.time(microseconds: 1_500) == "1.50 ms")
        #expect(Quantity.time(microseconds: 2_000_000) == "2.00 s")
        #expect(MeasuredUnit.microseconds.decade(10) == "10 µs")
        #expect(MeasuredUnit.microseconds.decade(1_000_000) == "1 s")
    }

    @Test("Sizes have the unit with the shortest text")
    func sizes() {
        #expect(Quantity.size(bytes: 999) == "999 B")
        #expect(Quantity.size(bytes: 1_500) == "1.50 KB")
        #expect(Quantity.size(bytes: 2_000_000) == "2.00 MB")
        #expect(MeasuredUnit.bytes.decade(10_000) == "10 KB")
    }

    @Test("Thousands are grouped", arguments: [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_000_000, "-1,000,000")])
    func grouped(value: Int, text: String) {
        #expect(Quantity.grouped(value) == text)
    }
}

struct PeerOutputTests {
    @Test("Lines of figures are parsed as samples and memory")
    func figures() throws {
        let output = try #require(PeerOutput("get 1000\nget 3000\nsetNew 500\nmemory 2048\ndaemon-memory 4096\n"))
        #expect(output.samples[.get]?.nanoseconds == [1_000, 3_000])
        #expect(output.samples[.setNew]?.nanoseconds == [500])
        #expect(output.memoryKibibytes == 2_048)
        #expect(output.daemonMemoryKibibytes == 4_096)
        #expect(output.rows(.libsecret, itemCount: 10).count == 2)
    }

    @Test(
        "An incomplete report is rejected",
        arguments: ["", "get", "get x", "get -1", "get 1 2", "ge 1", "get 1\nTraceback\n", "memory 5", "memory 99999999999999999999"])
    func refused(text: String) {
        #expect(PeerOutput(text) == nil)
    }
}
