// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// Reading and writing through keychaind, in one thread and in eight.
struct DaemonBenchmark: Benchmark {
    static let name = "keychaind"
    private static let threadCount = 8

    func run(_ setting: BenchmarkSetting) throws -> [Row] {
        let (subject, itemCount) = (setting.subject, setting.itemCount)
        var rows: [Row] = []
        for operation in [KeychainOperation.get, .contains, .overwrite, .setNew, .remove] {
            let count = operation == .get || operation == .contains ? setting.sampleCount : setting.writeSampleCount
            let samples = try Samples.measure(count) { try subject.perform(operation, $0, scope: Self.name) }
            if let row = Row(.valetWithDaemon, operation, itemCount: itemCount, samples) { rows.append(row) }
        }
        let count = max(50, setting.sampleCount / 2)
        // Each thread has a connection of its own, which its first call makes.
        let single = try ConcurrentRun(threadCount: 1, operationCount: count) { try subject.perform(.get, $0 * count + $1) }
        let run = try ConcurrentRun(threadCount: Self.threadCount, operationCount: count) { try subject.perform(.get, $0 * count + $1) }
        if var row = Row(.valetWithDaemon, .get, itemCount: itemCount, threadCount: Self.threadCount, run.samples) {
            row.operationsPerSecond = run.operationsPerSecond
            row.rateAgainstOneThread = run.operationsPerSecond / single.operationsPerSecond
            rows.append(row)
        }
        return rows
    }
}

/// Runs the benchmark in a mount namespace with a keychaind of its own, which keeps a copy of a keychain.
///
/// The path of keychaind's socket cannot be chosen, so that no environment variable leads a program to another service.
struct DaemonMeasurement {
    let folder: ThrowAwayFolder
    /// A keychain of the usual size, which stays as it is.
    let keychainHome: String

    /// The arguments are keychaind, `valet`, a directory, and the measuring program with its arguments.
    private static let script = """
        set -e
        mount -t tmpfs none /run
        mkdir -m 755 /run/keychain
        "$1" --directory "$3" --entitlements "$3/none" >&2 &
        service=$!
        trap 'kill $service; wait $service' EXIT
        while ! [ -S /run/keychain/keychaind.sock ]; do kill -0 $service; sleep 0.05; done
        "$2" daemon adopt >&2
        shift 3
        "$@"
        """

    func run(sampleCount: Int) throws -> [Row] {
        let valet = try ValetCommand.program()
        let keychaind = URL(filePath: valet).deletingLastPathComponent().appending(path: "keychaind").path
        guard FileManager.default.isExecutableFile(atPath: keychaind) else {
            throw Peer.Unavailable(reason: "\(keychaind) is not there: run `make release-daemon`")
        }
        try Peer.require(["unshare"], packages: "util-linux")
        let place = try folder.makeFolder("keychaind")
        let home = place + "/keychain"
        try FileManager.default.copyItem(atPath: keychainHome, toPath: home)
        let directory = try folder.makeFolder("keychaind/kept")
        let options = ["--mount"] + (geteuid() == 0 ? [] : ["--map-root-user"])
        let measuring = [Program.path, "benchmark", DaemonBenchmark.name, String(Peer.itemCount), String(sampleCount), place]
        let command = Command(
            "unshare", options + ["sh", "-c", Self.script, "sh", keychaind, valet, directory] + measuring,
            environment: Program.environment(keychainHome: home))
        return try JSONDecoder().decode([Row].self, from: Peer.attempt { try command.output(timeoutSeconds: 600) })
    }
}
