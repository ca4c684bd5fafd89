// SPDX-License-Identifier: Apache-2.0

/// The performance goals of the design.
struct DesignGoals {
    private static let usualItemCount = 1_000

    let rows: [Row]
    let memory: [MemoryRow]

    var all: [Goal] { reading + writing + forms + atScale + [listing, command] + daemon + desktop + memoryGoals }

    private var reading: [Goal] {
        [
            Goal("get / raw SQLite lookup", .atMost, 6, measured: ratio(median(.valet, .get), median(.rawSQLite, .get))),
            Goal("libsecret lookup / get", .atLeast, 50, measured: ratio(median(.libsecret, .get), median(.valet, .get))),
        ]
    }

    private var writing: [Goal] {
        [KeychainOperation.overwrite, .setNew].flatMap { operation in
            [
                // The bare append has one row, listed as a new key.
                Goal(
                    "\(operation.title) / append + fdatasync", .atMost, 2,
                    measured: ratio(median(.valet, operation), median(.bareAppend, .setNew))),
                Goal(
                    "libsecret \(operation.title) / ours", .atLeast, 200,
                    measured: ratio(median(.libsecret, operation), median(.valet, operation))),
            ]
        } + [
            Goal(
                "\(KeychainOperation.overwrite.title): rate of 8 threads / of one", .atLeast, 3,
                measured: row(.valet, .overwrite, threadCount: 8)?.rateAgainstOneThread)
        ]
    }

    private var forms: [Goal] {
        func inTurns(_ operation: KeychainOperation, _ form: Circumstance) -> (plain: Double?, other: Double?) {
            (median(.valet, operation, circumstance: .besideOtherForms), median(.valet, operation, circumstance: form))
        }
        let asynchronous = inTurns(.get, .asynchronous)
        return [KeychainOperation.get, .overwrite].map { operation in
            let times = inTurns(operation, .typedKey)
            return Goal("\(operation.title) with a typed key / without", .atMost, 1.2, measured: ratio(times.other, times.plain))
        } + [
            Goal(
                "asynchronous get - get", .atMost, 25, unit: "µs",
                measured: asynchronous.plain.flatMap { plain in asynchronous.other.map { $0 - plain } }),
            Goal(
                "from a write until another process is told", .atMost, 50, unit: "ms",
                measured: median(.valet, .overwrite, circumstance: .untilNoticed).map { $0 / 1_000 }),
        ]
    }

    /// The sizes are measured minutes apart, and the speed of a disk varies, so each write is first divided by the append of its own rounds.
    private var atScale: [Goal] {
        let largest = largestItemCount
        let name = "\(Quantity.grouped(largest)) items / 1,000"
        func againstAppend(_ operation: KeychainOperation, _ itemCount: Int) -> Double? {
            ratio(median(.valet, operation, itemCount: itemCount), median(.bareAppend, .setNew, itemCount: itemCount))
        }
        let reads = ratio(median(.valet, .get, itemCount: largest), median(.valet, .get))
        return [Goal("\(KeychainOperation.get.title): \(name)", .atMost, 2, measured: reads)]
            + [KeychainOperation.overwrite, .setNew].map { operation in
                Goal(
                    "\(operation.title): \(name), each / its append", .atMost, 2,
                    measured: ratio(againstAppend(operation, largest), againstAppend(operation, Self.usualItemCount)))
            }
    }

    private var listing: Goal {
        Goal(
            "all keys of 10,000", .atMost, 40, unit: "ms",
            measured: median(.valet, .allKeys, itemCount: 10_000).map { $0 / 1_000 })
    }

    private var command: Goal {
        Goal(
            "valet get / secret-tool lookup", .atMost, 2,
            measured: ratio(
                median(.valetCommand, .get, circumstance: .wholeProcess), median(.secretTool, .get, circumstance: .wholeProcess)))
    }

    private var daemon: [Goal] {
        let get = row(.valetWithDaemon, .get)
        return [
            Goal("get through keychaind", .atMost, 40, unit: "µs", measured: get?.latency.medianMicroseconds),
            Goal(
                "get through keychaind, p99 / median", .atMost, 5,
                measured: ratio(get?.latency.p99Microseconds, get?.latency.medianMicroseconds)),
            Goal(
                "get through keychaind, 8 threads", .atLeast, 40_000, unit: "/s",
                measured: row(.valetWithDaemon, .get, threadCount: 8)?.operationsPerSecond),
        ]
    }

    /// The same client, with GNOME Keyring and with ours.
    private var desktop: [Goal] {
        let largest = rows.filter { $0.contestant == .libsecretWithKeychain }.map(\.itemCount).max() ?? Self.usualItemCount
        return [
            Goal(
                "libsecret store: gnome-keyring / keychain-secret-service", .atLeast, 10,
                measured: ratio(median(.libsecret, .setNew), median(.libsecretWithKeychain, .setNew))),
            Goal(
                "secret-tool lookup: keychain-secret-service / gnome-keyring", .atMost, 1,
                measured: ratio(
                    median(.secretToolWithKeychain, .get, circumstance: .wholeProcess),
                    median(.secretTool, .get, circumstance: .wholeProcess))),
            Goal(
                "keychain-secret-service, search: \(Quantity.grouped(largest)) items / 1,000", .atMost, 2,
                measured: largest == Self.usualItemCount
                    ? nil : ratio(median(.libsecretWithKeychain, .contains, itemCount: largest), median(.libsecretWithKeychain, .contains))),
        ]
    }

    /// "Flat" allows for the noise of an allocator.
    private var memoryGoals: [Goal] {
        let largest = largestItemCount
        return [
            Goal(
                "peak memory, \(Quantity.grouped(largest)) items, the worst operation", .atMost, 60, unit: "MB",
                measured: peak(itemCount: largest)),
            Goal(
                "peak memory: \(Quantity.grouped(largest)) items / 1,000, the worst operation", .atMost, 1.25,
                measured: ratio(peak(itemCount: largest), peak(itemCount: Self.usualItemCount))),
            Goal(
                "peak memory: \(Quantity.grouped(largest)) items / 1,000, without all keys", .atMost, 1.25,
                measured: ratio(
                    peak(itemCount: largest, without: .allKeys), peak(itemCount: Self.usualItemCount, without: .allKeys))),
        ]
    }

    private var largestItemCount: Int { rows.map(\.itemCount).max() ?? Self.usualItemCount }

    private func row(
        _ contestant: Contestant, _ operation: KeychainOperation, itemCount: Int = usualItemCount, threadCount: Int = 1,
        circumstance: Circumstance = .alone
    ) -> Row? {
        rows.first {
            ($0.contestant, $0.operation, $0.itemCount) == (contestant, operation, itemCount)
                && ($0.threadCount, $0.circumstance) == (threadCount, circumstance)
        }
    }

    private func median(
        _ contestant: Contestant, _ operation: KeychainOperation, itemCount: Int = usualItemCount, circumstance: Circumstance = .alone
    ) -> Double? {
        row(contestant, operation, itemCount: itemCount, circumstance: circumstance)?.latency.medianMicroseconds
    }

    private func peak(itemCount: Int, without excluded: KeychainOperation? = nil) -> Double? {
        memory.filter { $0.contestant == .valet && $0.itemCount == itemCount && (excluded == nil || $0.operation != excluded) }
            .map(\.megabytes).max()
    }

    private func ratio(_ value: Double?, _ other: Double?) -> Double? {
        guard let value, let other, other > 0 else { return nil }
        return value / other
    }
}
