// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Synchronization
import Valet

extension ChildCommand {
    /// HOLDER: carries out each line of its input on one keychain, and prints `= STATUS TEXT`.
    static func session(_ arguments: [String]) throws {
        let person = TypedPresencePrompter()
        let keychain = try sessionKeychain(arguments.first, person)
        let context = AuthenticationContext()
        var planted: [PlantedSecret] = []
        say("ready")
        while let line = readLine() {
            let words = line.split(separator: " ").map(String.init)
            do throws(KeychainFailure) {
                if words.first == "plant" {
                    planted.append(try PlantedSecret(hexadecimal: words.last ?? ""))
                    say("= 0")
                } else {
                    if words.count > 2, words.first?.hasPrefix("read-as") == true { person.willType(words[2]) }
                    say("= 0 \(try perform(words, on: keychain, context))")
                }
            } catch {
                say("= \(error.line)")
            }
        }
        withExtendedLifetime(planted) {}
    }

    /// COUNT PASSCODE: unlocks and locks COUNT times, and prints how often each status was returned.
    static func lockCycles(_ arguments: [String]) throws {
        guard arguments.count == 2, let count = Int(arguments[0]) else { throw BadArguments() }
        let keychain = try sessionKeychain(nil)
        var tally = StatusTally()
        for _ in 0..<count {
            tally.note("unlock") { () throws(KeychainFailure) in try keychain.unlock(with: arguments[1]) }
            tally.note("lock") { () throws(KeychainFailure) in try keychain.lock(.whenUnlocked) }
        }
        tally.printAll()
    }

    /// ACCOUNT ...: reads the accounts in turn until its input ends, and prints how often each status was returned.
    ///
    /// The account `state` returns the lock state.
    static func readUntilInputEnds(_ arguments: [String]) throws {
        let keychain = try sessionKeychain(nil)
        var tally = StatusTally()
        say("ready")
        while !isInputAtEnd() {
            for account in arguments where account != "state" {
                tally.note(account) { () throws(KeychainFailure) in
                    guard try keychain.secret(of: account) == "secret of \(account)" else {
                        throw KeychainFailure(.internal, "another secret")
                    }
                }
            }
            if arguments.contains("state") {
                tally.note("state") { () throws(KeychainFailure) in
                    let state = try keychain.sessionStatus().state
                    guard state == .unlocked else { throw KeychainFailure(.internal, "\(state)") }
                }
            }
            // Yields the processor to the locking process.
            usleep(5_000)
        }
        tally.printAll()
    }

    private static func sessionKeychain(_ holder: String?, _ person: (any PresencePrompter)? = nil) throws -> LocalKeychain {
        guard let home = ProcessInfo.processInfo.environment["KEYCHAIN_HOME"],
            let selection = KeyHolderSelection(rawValue: holder ?? KeyHolderSelection.automatic.rawValue)
        else { throw BadArguments() }
        return LocalKeychain(home: home) { configuration in
            configuration.useTestPolicy(in: home)
            configuration.keyHolder = selection
            configuration.presencePrompter = person
            let environment = ProcessInfo.processInfo.environment
            configuration.credentialsDirectory = environment["CREDENTIALS_DIRECTORY"]
            if let tcti = environment["KEYCHAIN_TPM_TCTI"] { configuration.tpmTCTI = tcti }
            configuration.protectorForNewStore = environment["KEYCHAIN_PROTECTOR"] == "tpm2" ? .tpm2 : nil
        }
    }

    /// Carries out an operation, and returns the text to print with the success.
    private static func perform(
        _ words: [String], on keychain: LocalKeychain, _ context: AuthenticationContext
    ) throws(KeychainFailure) -> String {
        switch (words.first, words.count) {
        case ("process", 1): return "\(getpid())"
        case ("state", 1): return "\(try keychain.sessionStatus().state)"
        case ("holder", 1): return "\(try keychain.sessionStatus().holder)"
        case ("lock", 1): try keychain.lock(.whenUnlocked)
        case ("lock-all", 1): try keychain.lock(.everything)
        case ("unlock", 2): try keychain.unlock(with: words[1])
        case ("set", 2): try keychain.setPasscode(try Passcode(text: words[1]), autoLock: .standard)
        case ("change", 3), ("rotate", 3):
            try keychain.changePasscode(
                from: try Passcode(text: words[1]), to: try Passcode(text: words[2]), rotatingKeys: words[0] == "rotate",
                autoLock: .standard)
        // The passcode as hexadecimal digits, so that the input does not contain the passcode itself.
        case ("unlock-secret", 2): try keychain.unlock(try Passcode(normalized: SecretBytes(hexadecimal: words[1])), autoLock: .standard)
        case ("set-secret", 2):
            try keychain.setPasscode(try Passcode(normalized: SecretBytes(hexadecimal: words[1])), autoLock: .standard)
        case ("change-secret", 3):
            try keychain.changePasscode(
                from: try Passcode(normalized: SecretBytes(hexadecimal: words[1])),
                to: try Passcode(normalized: SecretBytes(hexadecimal: words[2])), rotatingKeys: false, autoLock: .standard)
        case ("repair", 1):
            guard try keychain.repair(applying: true)?.originalPath != nil else {
                throw KeychainFailure(.internal, "the keychain was not repaired")
            }
        case ("remove", 2):
            try keychain.removePasscode(
                try Passcode(text: words[1]), deleting: try keychain.passcodeRemoval(try Passcode(text: words[1])))
        case ("read", 2): return try keychain.secret(of: words[1])
        case ("read-as-person", 3): return try keychain.secret(of: words[1], Authentication())
        case ("read-as-person-with-context", 3): return try keychain.secret(of: words[1], Authentication(context: context))
        case ("invalidate-context", 1): context.invalidate()
        case ("add-protected", 2):
            try keychain.addItem(
                words[1], "secret of \(words[1])", protectedBy: AccessControl(.whenPasscodeSetThisDeviceOnly, constraint: .devicePasscode))
        case ("add", 3): try keychain.addItem(words[1], "secret of \(words[1])", ItemAccessibility(rawValue: words[2]))
        case ("restore", 3):
            let path = try keychain.configuration().storePath.replacing("keychain.db", with: words[1])
            _ = try keychain.restoreBackup(atPath: path, password: try Passcode(text: words[2]), dryRun: false)
        case ("protect", 2), ("protect", 3):
            guard let kind = DeviceProtectorKind.allCases.first(where: { $0.name == words[1] }) else { break }
            let passcode: Passcode? = words.count > 2 ? try Passcode(text: words[2]) : nil
            _ = try keychain.setProtector(kind, passcode: passcode, creatingRecoveryKey: false)
        case ("recover", 1):
            // The key is in a file beside the keychain.
            let path = try keychain.configuration().storePath.replacing("keychain.db", with: "recovery")
            let key = try Passcode(text: (try? String(contentsOfFile: path, encoding: .utf8)) ?? "")
            try keychain.useRecoveryKey(key.bytes, protector: .keyFile, passcode: nil, acceptingNoPasscode: true)
        case ("add-pair", 1):
            try keychain.addItem("left", "one")
            try keychain.addItem("right", "two")
        case ("stop-synchronizing", 1): try keychain.stopSynchronizing()
        case ("migrate", 1):
            do {
                try CurrentKeychain.with(keychain) {
                    try Valet.valet(with: "destination", accessibility: .whenUnlocked)
                        .migrateObjects(from: Valet.valet(with: "source", accessibility: .whenUnlocked), removeOnCompletion: true)
                }
            } catch {
                throw KeychainFailure(.internal, "the migration failed: \(error)")
            }
        default: throw KeychainFailure(.parameter, "unknown request \(words.first ?? "")")
        }
        return ""
    }

    private static func isInputAtEnd() -> Bool {
        var request = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
        // One request, which is ours.
        return unsafe poll(&request, 1, 0) > 0
    }
}

/// A secret in memory for keys, which a search must find.
private final class PlantedSecret {
    private let secret: SecretBytes

    init(hexadecimal: String) throws(KeychainFailure) {
        secret = try SecretBytes(hexadecimal: hexadecimal)
    }
}

extension SecretBytes {
    /// Writes the bytes one by one into secret memory, so that no other buffer contains all of them.
    fileprivate init(hexadecimal: String) throws(KeychainFailure) {
        let digits = Array(hexadecimal)
        guard !digits.isEmpty, digits.count.isMultiple(of: 2) else { throw KeychainFailure(.parameter, "not hexadecimal") }
        try unsafe self.init(byteCount: digits.count / 2) { buffer in
            for index in buffer.indices {
                unsafe buffer[index] = UInt8(String(digits[2 * index...2 * index + 1]), radix: 16) ?? 0
            }
        }
    }
}

/// Counts the statuses of operations.
private struct StatusTally {
    private var counts: [String: Int] = [:]

    mutating func note(_ operation: String, _ body: () throws(KeychainFailure) -> Void) {
        do throws(KeychainFailure) {
            try body()
            counts["\(operation) 0", default: 0] += 1
        } catch {
            // The reason of an unexpected status helps to find its cause.
            let isExpected = error.status == .interactionNotAllowed
            counts["\(operation) \(error.status.rawValue)\(isExpected ? "" : " \(error.reason)")", default: 0] += 1
        }
    }

    func printAll() {
        for (answer, count) in counts.sorted(by: { $0.key < $1.key }) { say("\(count) \(answer)") }
        say("end")
    }
}

/// A prompter that enters the given text once.
final class TypedPresencePrompter: PresencePrompter {
    private let next = Mutex<[UInt8]?>(nil)

    var canAsk: Bool { next.withLock { $0 != nil } }

    func willType(_ text: String) {
        next.withLock { $0 = Array(text.utf8) }
    }

    func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        guard let bytes = next.withLock({ $0.take() }) else { throw .promptUnavailable("there is nothing to enter") }
        do throws(KeychainFailure) {
            // As many bytes as the buffer has.
            let secret = try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
            return .secret(secret)
        } catch {
            throw .failed(error.reason)
        }
    }
}
