// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// Writing, compared with SQLite's durable insert and a flushed append, all in turns.
struct WriteBenchmark: Benchmark {
    static let name = "write"
    private static let warmUpCount = 20

    func run(_ setting: BenchmarkSetting) throws -> [Row] {
        let (subject, itemCount) = (setting.subject, setting.itemCount)
        let append = try BareAppend(path: setting.directory + "/appended")
        let database = try RawDatabase(path: setting.directory + "/raw-insert.db")
        try database.fill(rowCount: itemCount)
        var (bare, insert) = (Samples(), Samples())
        var ours: [KeychainOperation: Samples] = [:]
        for index in -Self.warmUpCount..<setting.writeSampleCount {
            if index == 0 { (bare, insert, ours) = (Samples(), Samples(), [:]) }
            let number = index + Self.warmUpCount
            try bare.measure { try append.append() }
            try insert.measure { try database.insert(itemCount + number) }
            for operation in [KeychainOperation.setNew, .overwrite, .remove] {
                try ours[operation, default: Samples()].measure { try subject.perform(operation, number) }
            }
        }
        let limits = [Row(.bareAppend, .setNew, itemCount: itemCount, bare), Row(.rawSQLite, .setNew, itemCount: itemCount, insert)]
        return (limits + ours.map { Row(.valet, $0.key, itemCount: itemCount, $0.value) }).compactMap(\.self)
    }
}
