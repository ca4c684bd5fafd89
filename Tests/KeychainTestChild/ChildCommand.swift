// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainServices
import KeychainStore
import KeychainTestSupport
import Valet

/// The commands of the child process.
enum ChildCommand {
    static let all: [String: @Sendable ([String]) throws -> Void] = [
        "acknowledged-sets": acknowledgedSets,
        "acknowledged-sets-on-threads": acknowledgedSetsOnThreads,
        "sets-until-killed": setsUntilKilled,
        "synchronized-sets-until-killed": synchronizedSetsUntilKilled,
        "sets-on-request": setsOnRequest,
        "hold-open": holdOpen,
        "serve": serve,
        "use-daemon": useDaemon,
        "execute-after-connecting": executeAfterConnecting,
        "identify-on": identify,
        "confined": tryConfinedCalls,
        "hand-over": handOver,
        "attempt": attempt,
        "typed-calls": typedCalls,
        "add-data-accounts": addDataAccounts,
        "add-item": addItem,
        "count-descriptors": countDescriptors,
        "edit-database": editDatabase,
        "leave-traces": storeMarkers,
        "mixed-operations": mixedOperations,
        "talk-of-everything": logEverything,
        "session": session,
        "lock-cycles": lockCycles,
        "reads-until-told-to-end": readUntilInputEnds,
        "hold-keys": holdKeys,
        "without-keyring": withoutKeyring,
        "restore-backup": restoreBackup,
        "seal-and-fail": sealAndFail,
        "ask": ask,
        "ask-on-terminal": askOnTerminal,
        "as-job": asJob,
        "commit-fault": commitFault,
        "print-settings": printSettings,
        "forks": forkRepeatedly,
        "fork-with-store": forkWithStore,
        "fork-with-key-holder": forkWithKeyHolder,
        "stay-unlocked": stayUnlocked,
        "store-expired-token": storeExpiredToken,
        "refresh-token": refreshToken,
        "listen": listen,
        "objects-until-killed": createObjectsUntilKilled,
    ]
}

struct BadArguments: Error {}

/// Prints a line by one unbuffered write(2), as acknowledgements require.
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
    /// SERVICE HEX ...: adds a generic password for each account, which is data and not a string, with the value `secret`.
    private static func addDataAccounts(_ arguments: [String]) throws {
        guard let service = arguments.first else { throw BadArguments() }
        for digits in arguments.dropFirst() {
            let account = stride(from: 0, to: digits.utf8.count, by: 2).compactMap { UInt8(digits.dropFirst($0).prefix(2), radix: 16) }
            let item: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword as String, kSecAttrService as String: service,
                kSecAttrAccount as String: Data(account), kSecValueData as String: Data("secret".utf8),
            ]
            guard SecItemAdd(item as CFDictionary, nil) == errSecSuccess else { throw BadArguments() }
        }
    }

    /// ATTRIBUTE=TEXT ...: adds an item with the value `secret`; the attributes have the names that their constants stand for.
    private static func addItem(_ arguments: [String]) throws {
        var item: [String: Any] = [kSecValueData as String: Data("secret".utf8)]
        for argument in arguments {
            guard let separator = argument.firstIndex(of: "=") else { throw BadArguments() }
            item[String(argument[..<separator])] = String(argument[argument.index(after: separator)...])
        }
        guard SecItemAdd(item as CFDictionary, nil) == errSecSuccess else { throw BadArguments() }
    }

    /// COUNT full|normal: sets COUNT new keys, and acknowledges each.
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

    /// START: sets and removes synchronizable items until it is killed, and acknowledges each change; a round of synchronization is among
    /// them.
    private static func synchronizedSetsUntilKilled(_ arguments: [String]) throws {
        guard let start = arguments.first.flatMap({ Int($0) }), let identifier = Identifier(nonEmpty: "child"),
            let home = ProcessInfo.processInfo.environment["KEYCHAIN_HOME"]
        else { throw BadArguments() }
        let keychain = LocalKeychain(home: home)
        try CurrentKeychain.with(keychain) {
            let valet = Valet.iCloudValet(with: identifier, accessibility: .whenUnlocked)
            for index in start... {
                try valet.setString("value \(index)", forKey: "item \(index % 10)")
                say("ack \(index)")
                if index % 3 == 0 { try valet.removeObject(forKey: "item \(index % 10)") }
                if index % 7 == 0 {
                    try RecordAudit.with(keychain) { audit throws(KeychainFailure) in
                        // The ledger must be complete before it forgets the records.
                        if let objection = try audit.objections().first { throw KeychainFailure(.internal, objection) }
                        try audit.synchronize()
                    }
                }
            }
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
                // The log contains the reason, on the same stream.
                say("failed \(error)")
            }
        }
    }

    /// The keychain is closed when this returns.
    private static func set(_ key: String, home: String) throws {
        try CurrentKeychain.with(LocalKeychain(home: home)) { try testValet().setString("value of \(key)", forKey: key) }
    }

    /// FAULT: commits a fault that a sanitizer must report.
    private static func commitFault(_ arguments: [String]) throws {
        guard let fault = arguments.first.flatMap(PlantedFault.init) else { throw BadArguments() }
        fault.commit()
        say("committed")
    }

    /// HOME: keeps a keychain open, and carries out the lines `set KEY VALUE` and `get KEY`.
    private static func serve(_ arguments: [String]) throws {
        guard let home = arguments.first else { throw BadArguments() }
        try CurrentKeychain.with(LocalKeychain(home: home)) {
            let valet = try testValet()
            say("ready")
            while let words = readLine()?.split(separator: " ").map(String.init), words.count > 1 {
                do {
                    if words[0] == "set" { try valet.setString(words[2], forKey: words[1]) }
                    say(words[0] == "set" ? "done" : "value \(try valet.string(forKey: words[1]))")
                } catch {
                    say("failed \(error)")
                }
            }
        }
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

extension ChildCommand {
    /// [--as-user UID] add|read|count ...: performs each on the keychain of the environment, and prints `0 NAME` or the failure.
    static func attempt(_ arguments: [String]) throws {
        var rest = arguments[...]
        if rest.first == "--as-user" {
            guard let user = rest.dropFirst().first.flatMap({ UInt32($0) }) else { throw BadArguments() }
            // The program's file may be out of that user's reach; it is already loaded.
            guard setregid(user, user) == 0, setreuid(user, user) == 0 else { throw BadArguments() }
            rest = rest.dropFirst(2)
        }
        for operation in rest {
            do throws(KeychainFailure) {
                say("0 \(operation)\(try perform(operation))")
            } catch {
                say(error.line)
            }
        }
    }

    /// Stores or reads a typed value, and prints the reason, the status, and the text of a failure.
    static func typedCalls(_ arguments: [String]) throws {
        let (vault, key) = (Valet.valet(with: "typed", accessibility: .whenUnlocked), ValetKey<String>("key"))
        for operation in arguments {
            do throws(ValetFailure) {
                switch operation {
                case "set": try vault.set(String(repeating: "value", count: 1_000), for: key)
                case "get": _ = try vault.valueIfPresent(for: key)
                default: say("unknown operation \(operation)")
                }
                say("done")
            } catch {
                say("\(error.reason) | \(error.status ?? 0) | \(error.localizedDescription)")
            }
        }
    }

    /// Carries out an operation, and returns the text to print with the success.
    private static func perform(_ operation: String) throws(KeychainFailure) -> String {
        // Like any program's, but with a fixed identifier, because the kernel's name for the program depends on its parent.
        let keychain = LocalKeychain(
            configuration: try .fromEnvironment(), entitlements: Entitlements(applicationIdentifier: "KeychainTestChild"))
        switch operation {
        case "add":
            try keychain.addItem("attempt \(UInt64.random(in: 0 ... .max))", "a secret that was added")
            return ""
        case "read", "count":
            let query = ItemQuery(itemClass: .genericPassword)
            let items = try keychain.copyMatching(MatchRequest(query: query, limit: nil, includesSecrets: true))
            return operation == "count" ? " \(items.count)" : ""
        default: throw KeychainFailure(.parameter, "unknown operation \(operation)")
        }
    }
}

extension ChildCommand {
    /// THREADS COUNT full|normal|early: each thread sets COUNT new keys, and announces and acknowledges each.
    ///
    /// `early` is a planted fault: the acknowledgement precedes the write.
    static func acknowledgedSetsOnThreads(_ arguments: [String]) throws {
        guard arguments.count == 3, let threadCount = Int(arguments[0]), let count = Int(arguments[1]),
            let home = ProcessInfo.processInfo.environment["KEYCHAIN_HOME"]
        else { throw BadArguments() }
        let mode = arguments[2]
        let keychain = LocalKeychain(home: home) { configuration in
            if mode == "normal" { configuration.storeOptions.synchronous = .normal }
        }
        let failed = DispatchSemaphore(value: 0)
        let ended = DispatchGroup()
        for thread in 0..<threadCount {
            ended.enter()
            Thread.detachNewThread {
                defer { ended.leave() }
                do {
                    try CurrentKeychain.with(keychain) {
                        let valet = try testValet()
                        for index in 0..<count {
                            let name = "\(thread)-\(index)"
                            say("ask \(name)")
                            if mode == "early" { say("ack \(name)") }
                            try valet.setString("value \(name)", forKey: "key \(name)")
                            if mode != "early" { say("ack \(name)") }
                        }
                    }
                } catch {
                    say("failed \(error)")
                    failed.signal()
                }
            }
        }
        ended.wait()
        if failed.wait(timeout: .now()) == .success { throw BadArguments() }
    }
}

extension ChildCommand {
    /// GOOD BAD ...: repeatedly uses the keychain below GOOD and fails on those below BAD.
    ///
    /// Prints the number of open descriptors before and after.
    static func countDescriptors(_ arguments: [String]) throws {
        guard let good = arguments.first else { throw BadArguments() }
        // Descriptors that stay open in the process, such as that of the random source, are open after the first round.
        try useAll(good, arguments.dropFirst())
        let before = try openDescriptorCount()
        for _ in 0..<50 { try useAll(good, arguments.dropFirst()) }
        say("before \(before)")
        say("after \(try openDescriptorCount())")
    }

    private static func useAll(_ good: String, _ bad: ArraySlice<String>) throws {
        let account = "account \(UInt64.random(in: 0 ... .max))"
        let keychain = LocalKeychain(home: good)
        try keychain.addItem(account, "secret")
        guard try keychain.secret(of: account) == "secret" else { throw BadArguments() }
        try keychain.deleteItem(account)
        for home in bad {
            let keychain = LocalKeychain(home: home)
            let results = [Result { try keychain.addItem(account, "secret") }, Result { _ = try keychain.secret(of: account) }]
            for case .success in results { throw BadArguments() }
        }
    }

    static func openDescriptorCount() throws -> Int {
        // The descriptor that reads the directory is counted both times.
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
}

extension ChildCommand {
    /// PATH SQL: edits the file of a keychain, and updates its page checksums.
    static func editDatabase(_ arguments: [String]) throws {
        guard arguments.count == 2 else { throw BadArguments() }
        try RawDatabase(arguments[0]).execute(arguments[1])
    }
}

extension ChildCommand {
    /// FILE PASSWORD: restores the backup into the keychain of the environment.
    ///
    /// Prints `restoring`, and then `restored COUNT` with the number of added items.
    static func restoreBackup(_ arguments: [String]) throws {
        guard arguments.count == 2 else { throw BadArguments() }
        let keychain = LocalKeychain(
            configuration: try .fromEnvironment(), entitlements: Entitlements(applicationIdentifier: "KeychainTestChild"))
        say("restoring")
        let summary = try keychain.restoreBackup(atPath: arguments[0], password: Passcode(text: arguments[1]), dryRun: false)
        say("restored \(summary.addedCount)")
    }
}
