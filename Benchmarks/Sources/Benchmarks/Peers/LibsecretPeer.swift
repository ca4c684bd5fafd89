// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// libsecret, measured by a small C program.
struct LibsecretPeer {
    struct SampleCounts {
        var reads = 300
        var writes = 30
        var listings = 5
    }

    let session: SecretServiceSession
    let directory: String
    var sampleCounts = SampleCounts()

    /// Fills the default collection and measures.
    func run(itemCount: Int = Peer.itemCount, timeoutSeconds: Double = 300) throws -> PeerOutput {
        let program = try build()
        let counts = [itemCount, sampleCounts.reads, sampleCounts.writes, sampleCounts.listings].map(String.init)
        let output = try Peer.attempt {
            try Command(program, counts, environment: session.environment, input: FilledValet.value + "\n").output(
                timeoutSeconds: timeoutSeconds)
        }
        guard let result = PeerOutput(String(decoding: output, as: UTF8.self)) else {
            throw Peer.Unavailable(reason: "its measuring program wrote something else than figures")
        }
        return result
    }

    private func build() throws -> String {
        let packages = "libsecret-1-dev pkg-config gcc"
        try Peer.require(["cc", "pkg-config"], packages: packages)
        let environment = ProcessInfo.processInfo.environment
        let flags: Data
        do {
            flags = try Command("pkg-config", ["--cflags", "--libs", "libsecret-1"], environment: environment).output(timeoutSeconds: 30)
        } catch is Command.Failure {
            throw Peer.Unavailable(reason: "its development files are not installed (Debian: \(packages); Scripts/install-peers.sh)")
        }
        let program = directory + "/libsecret-peer"
        let options = String(decoding: flags, as: UTF8.self).split(whereSeparator: \.isWhitespace).map(String.init)
        let command = Command(
            "cc", ["-O2", "-Wall", "-Werror", Peer.source("libsecret_peer.c"), "-o", program] + options, environment: environment)
        _ = try Peer.attempt { try command.output(timeoutSeconds: 120) }
        return program
    }
}
