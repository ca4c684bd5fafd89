// SPDX-License-Identifier: Apache-2.0

/// A group of bars in a chart.
struct ChartGroup {
    struct Bar {
        let label: String
        let role: Contestant.Role
        let median: Double
        let p99: Double
    }

    let title: String
    let bars: [Bar]

    /// The groups of the chart: each operation with the usual number of items, whole processes, and growth.
    static func all(_ comparison: Comparison, itemCount: Int = 1_000) -> [ChartGroup] {
        let usual = comparison.rows.filter { $0.itemCount == itemCount && $0.threadCount == 1 }
        let inProcess = KeychainOperation.allCases.map { operation in
            ChartGroup(
                title: title(operation), bars: usual.filter { $0.operation == operation && $0.circumstance == .alone }.map { Bar($0) })
        }
        let processes = [KeychainOperation.get, .setNew].map { operation in
            ChartGroup(
                title: title(operation) + ", whole process",
                bars: usual.filter { $0.operation == operation && $0.circumstance == .wholeProcess }.map { Bar($0) })
        }
        let growth = [KeychainOperation.get, .overwrite].map { operation in
            let rows = comparison.rows.filter {
                $0.contestant == .valet && $0.operation == operation && $0.circumstance == .alone && $0.threadCount == 1
            }
            return ChartGroup(
                title: title(operation) + ", by number of items",
                bars: rows.map { Bar(label: Quantity.grouped($0.itemCount), role: .ours, latency: $0.latency) })
        }
        return (inProcess + processes + growth).filter { !$0.bars.isEmpty }
    }

    private static func title(_ operation: KeychainOperation) -> String {
        operation.title.prefix(1).uppercased() + operation.title.dropFirst()
    }
}

extension ChartGroup.Bar {
    init(label: String, role: Contestant.Role, latency: Latency) {
        self.init(label: label, role: role, median: latency.medianMicroseconds, p99: latency.p99Microseconds)
    }

    init(_ row: Row) {
        let label: String
        switch (row.contestant, row.operation) {
        case (.aesGCM, .get): label = "AES-256-GCM, open"
        case (.aesGCM, _): label = "AES-256-GCM, seal"
        case (.rawSQLite, .get): label = "raw SQLite, lookup"
        case (.rawSQLite, _): label = "raw SQLite, durable"
        default: label = row.contestant.rawValue
        }
        self.init(label: label, role: row.contestant.role, latency: row.latency)
    }
}
