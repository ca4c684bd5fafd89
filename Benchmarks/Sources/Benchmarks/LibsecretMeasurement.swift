// SPDX-License-Identifier: Apache-2.0
import CLibsecretClient

/// Measures libsecret against gnome-keyring.
///
/// Runs inside a D-Bus session of its own, with a throw-away home.
enum LibsecretMeasurement {
    enum Failure: Error {
        case noLibrary
        case refused
    }

    static let value = "a token of about forty characters, as most"

    static func run(itemCount: Int) throws -> Report {
        guard libsecret_client_load() else { throw Failure.noLibrary }
        for index in 0..<itemCount { try store(index) }
        let lookups = try Samples.measure(500) { index in
            guard unsafe libsecret_client_lookup(ValetMeasurement.key(index % itemCount)) else { throw Failure.refused }
        }
        let overwrites = try Samples.measure(30) { try store($0 % itemCount) }
        let additions = try Samples.measure(30) { try store(itemCount + $0) }
        let processes = try Samples.measure(50) { index in
            let ending = try MeasuredProcess.run("secret-tool", ["lookup", "key", ValetMeasurement.key(index % itemCount)])
            guard ending == 0 else { throw Failure.refused }
        }
        return Report(
            itemCount: itemCount,
            summaries: [
                lookups.summary(.libsecretLookup), overwrites.summary(.libsecretStore), additions.summary(.libsecretNew),
                processes.summary(.secretToolProcess),
            ],
            peakMemory: 0)
    }

    private static func store(_ index: Int) throws {
        // Swift makes C strings of both for the length of the call.
        guard unsafe libsecret_client_store(ValetMeasurement.key(index), value) else { throw Failure.refused }
    }
}
