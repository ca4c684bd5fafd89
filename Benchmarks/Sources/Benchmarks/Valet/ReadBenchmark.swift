// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// Reading, compared with SQLite's lookup and with decrypting and encrypting as many bytes.
///
/// They are measured in turns, so that a change of the load affects all of them.
struct ReadBenchmark: Benchmark {
    static let name = "read"
    private static let blockSize = 100

    func run(_ setting: BenchmarkSetting) throws -> [Row] {
        let (subject, itemCount) = (setting.subject, setting.itemCount)
        let database = try RawDatabase(path: setting.directory + "/raw-lookup.db")
        try database.fill(rowCount: itemCount)
        let message = try SealedMessage()
        var (raw, open, seal, get, contains) = (Samples(), Samples(), Samples(), Samples(), Samples())
        for start in stride(from: 0, to: setting.sampleCount, by: Self.blockSize) {
            // The first runs of a block only warm the caches after the other operations, and are not counted.
            raw.append(try Samples.measure(Self.blockSize) { try database.lookUp((start + $0) &* 7_919 % itemCount) })
            get.append(try Samples.measure(Self.blockSize) { try subject.perform(.get, start + $0) })
            open.append(try Samples.measure(Self.blockSize) { _ in try message.open() })
            contains.append(try Samples.measure(Self.blockSize) { try subject.perform(.contains, start + $0) })
            seal.append(try Samples.measure(Self.blockSize) { _ in try message.seal() })
        }
        return [
            Row(.rawSQLite, .get, itemCount: itemCount, raw), Row(.aesGCM, .get, itemCount: itemCount, open),
            Row(.aesGCM, .setNew, itemCount: itemCount, seal), Row(.valet, .get, itemCount: itemCount, get),
            Row(.valet, .contains, itemCount: itemCount, contains),
        ].compactMap(\.self)
    }
}
