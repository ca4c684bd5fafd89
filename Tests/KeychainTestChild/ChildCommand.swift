// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Valet

/// What a child process can be told to do.
enum ChildCommand {
    static let all: [String: @Sendable ([String]) throws -> Void] = [
        "acknowledged-sets": acknowledgedSets,
        "acknowledged-sets-on-threads": acknowledgedSetsOnThreads,
        "sets-until-killed": setsUntilKilled,
        "sets-on-request": setsOnRequest,
        "hold-open": holdOpen,
        "attempt": attempt,
        "count-descriptors": countDescriptors,
        "edit-database": editDatabase,
        "leave-traces": leaveTraces,
        "mixed-operations": mixedOperations,
        "talk-of-everything": talkOfEverything,
        "session": session,
        "lock-cycles": lockCycles,
        "reads-until-told-to-end": readsUntilToldToEnd,
        "hold-keys": holdKeys,
        "without-keyring": withoutKeyring,
        "restore-backup": restoreBackup,
        "seal-and-fail": sealAndFail,
        "ask": ask,
        "ask-on-terminal": askOnTerminal,
        "as-job": asJob,
        "commit-fault": commitFault,
    ]
}

struct BadArguments: Error {}

/// One line on standard output, by one write(2), at once: it is an acknowledgement.
func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = unsafe write(1, bytes, bytes.count)
}

/// The valet that all commands use.
func testValet(_ identifier: String = "child") throws -> Valet {
    guard let identifier = Identifier(nonEmpty: identifier) else { throw BadArguments() }
    return Valet.valet(with: identifier, accessibility: .whenUnlocked)
}

extension ChildCommand {
    /// COUNT full|normal: sets that many new keys, and acknowledges each.
    private static func acknowledgedSets(_ arguments: [String]) throws {
        guard arguments.count == 2, let count = Int(arguments[0]), let home = ProcessInfo.processInfo.environment["KEYCHAIN_HOME"] else {
            throw BadArguments()
        }
        let keychain = LocalKeychain(home: home) { configuration in
            if arguments[1] == "normal" { configuration.storeOptions.synchronous = .normal }
        }
        try CurrentKeychain.with(keychain) {
            let valet = try testValet()
            for index in 0..<count {
                try valet.setString("value \(index)", forKey: "key \(index)")
                say("ack \(index)")
            }
        }
    }

    /// START: sets `item START`, `item START+1` … and overwrites `counter` each time; acknowledges each pair until it is killed.
    private static func setsUntilKilled(_ arguments: [String]) throws {
        guard let start = arguments.first.flatMap({ Int($0) }) else { throw BadArguments() }
        let valet = try testValet()
        for index in start... {
            try valet.setString("value \(index)", forKey: "item \(index)")
            try valet.setString("\(index)", forKey: "counter")
            say("ack \(index)")
        }
    }

    /// KEY: for each line of standard input, a directory, sets the key in the keychain there.
    private static func setsOnRequest(_ arguments: [String]) throws {
        guard let key = arguments.first else { throw BadArguments() }
        say("ready")
        while let home = readLine() {
            do {
                try set(key, home: home)
                say("done")
            } catch {
                // The reason is in the log, on standard error, which is the same stream.
                say("failed \(error)")
            }
        }
    }

    /// The keychain is closed when this returns.
    private static func set(_ key: String, home: String) throws {
        try CurrentKeychain.with(LocalKeychain(home: home)) { try testValet().setString("value of \(key)", forKey: key) }
    }

    /// FAULT: what a sanitizer must report.
    private static func commitFault(_ arguments: [String]) throws {
        guard let fault = arguments.first.flatMap(PlantedFault.init) else { throw BadArguments() }
        fault.commit()
        say("committed")
    }

    /// Opens the keychain, reads from it, and keeps it open until its input ends.
    private static func holdOpen(_ arguments: [String]) throws {
        let valet = try testValet()
        try valet.setString("held", forKey: "held open")
        _ = try valet.string(forKey: "held open")
        say("ready")
        while readLine() != nil {}
    }
}
