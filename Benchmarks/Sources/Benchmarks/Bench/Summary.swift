// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// The measured figures.
enum Figure: String, Codable {
    case rawLookup = "raw SQLite lookup by primary key"
    case bareAppend = "bare 100-byte append + fdatasync"
    case read = "Valet.string"
    case overwrite = "Valet.setString, overwrite"
    case new = "Valet.setString, new key"
    case contains = "Valet.containsObject"
    case missing = "Valet.containsObject, absent key"
    case allKeys = "Valet.allKeys"
    case readDeviceBound = "SecItemCopyMatching, device-bound class"
    case readUnderPasscode = "SecItemCopyMatching, under a passcode"
    case unlock = "unlock (scrypt, 64 MiB)"
    case lock = "lock"
    case firstRead = "first read in a fresh process, unlocked"
    case addProtected = "SecItemAdd, an item that needs the person"
    case readAsking = "read that asks, a script for the person"
    case readWithContext = "read with a satisfied LAContext"
    case valetProcess = "valet get, whole process"
    case secretToolProcess = "secret-tool lookup, whole process"
    case libsecretLookup = "libsecret lookup"
    case libsecretStore = "libsecret store, overwrite"
    case libsecretNew = "libsecret store, new key"
}

/// The median and the 99th percentile of one figure, in microseconds.
struct Summary: Codable {
    let figure: Figure
    let median: Double
    let p99: Double
    let count: Int
}

/// The results of one measuring process with a keychain of one size.
struct Report: Codable {
    let itemCount: Int
    let summaries: [Summary]
    /// The peak memory of the process, in MiB.
    let peakMemory: Double

    func median(_ figure: Figure) -> Double? { summaries.first { $0.figure == figure }?.median }
}

extension Samples {
    func summary(_ figure: Figure) -> Summary {
        let latency = Latency(self)
        return Summary(
            figure: figure, median: latency?.medianMicroseconds ?? 0, p99: latency?.p99Microseconds ?? 0, count: nanoseconds.count)
    }
}
