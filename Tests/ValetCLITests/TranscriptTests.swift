// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainTestSupport
import Testing

/// A transcript from `Scripts/`.
///
/// The format is described in TranscriptTests.swift.
struct Transcript: Sendable, CustomTestStringConvertible {
    /// A command and its expected result.
    struct Step: Sendable {
        let command: String
        let isOnTerminal: Bool
        /// Counted from 1.
        let line: Int
        var exchanges: [Exchange] = [Exchange()]
        var standardError = ""
        var exitCode: Int32 = 0
    }

    /// An output, and the input after it, if any.
    struct Exchange: Sendable {
        var output = ""
        var typed: Typed?
    }

    struct Typed: Sendable {
        let text: String
        let isShown: Bool
    }

    struct FormatError: Error, CustomStringConvertible {
        let description: String
    }

    let name: String
    /// Whether the transcript is for root only, or for other users only; nil for all users.
    private var isForRoot: Bool?
    /// Whether it also runs where keychaind keeps the keychain.
    private(set) var isForKeychaind = false
    /// Commands that must succeed, or the transcript is skipped.
    private var conditions: [String] = []
    private(set) var steps: [Step] = []

    var testDescription: String { name }

    static func all() throws -> [Transcript] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Scripts")
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".txt") }.sorted().map {
            try Transcript(name: $0, text: String(contentsOf: folder.appending(path: $0), encoding: .utf8))
        }
    }

    /// The reason why the transcript cannot run on this machine as this user; nil if it can.
    func obstacle() throws -> String? {
        if let isForRoot, isForRoot != (getuid() == 0) { return isForRoot ? "only root can run it" : "root cannot run it" }
        let failing = try conditions.first { command in
            try TranscriptEnvironment.with(.cheap) {
                try PipedRun.run(Step(command: command, isOnTerminal: false, line: 0), in: $0).exitCode != 0
            }
        }
        return failing.map { "'\($0)' fails here" }
    }

    init(name: String, text: String) throws {
        self.name = name
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() where !line.isEmpty {
            guard try add(String(line), number: index + 1) else {
                throw FormatError(description: "\(name), line \(index + 1): no command comes before this line, or it does not go with it")
            }
        }
    }

    /// Parses a line.
    ///
    /// Returns false if it is not allowed there.
    private mutating func add(_ line: String, number: Int) throws -> Bool {
        if line == "# as root" { isForRoot = true }
        if line == "# not as root" { isForRoot = false }
        if line == "# also with keychaind" { isForKeychaind = true }
        if line.hasPrefix("# only if ") { conditions.append(String(line.dropFirst(10))) }
        if line.hasPrefix("#") { return true }
        if line.hasPrefix("$ ") || line.hasPrefix("% ") {
            steps.append(Step(command: String(line.dropFirst(2)), isOnTerminal: line.hasPrefix("%"), line: number))
            return true
        }
        guard var step = steps.popLast() else { return false }
        defer { steps.append(step) }
        let last = step.exchanges.count - 1
        if line.hasPrefix("! ") {
            step.standardError += line.dropFirst(2) + "\n"
            return !step.isOnTerminal
        }
        if line.hasPrefix("? ") {
            guard let code = Int32(line.dropFirst(2)) else { return false }
            step.exitCode = code
            return true
        }
        if line.hasPrefix("<") {
            guard let typed = Typed(line) else { return false }
            // An input follows a prompt, whose line has no end.
            step.exchanges[last].output.removeLast(step.exchanges[last].output.hasSuffix("\n") ? 1 : 0)
            step.exchanges[last].typed = typed
            step.exchanges.append(Exchange())
            return step.isOnTerminal
        }
        if line == "\\c" {
            guard step.exchanges[last].output.hasSuffix("\n") else { return false }
            step.exchanges[last].output.removeLast()
            return true
        }
        step.exchanges[last].output += (line.hasPrefix("\\") ? String(line.dropFirst()) : line) + "\n"
        return true
    }
}

extension Transcript.Typed {
    init?(_ line: String) {
        if line.hasPrefix("<^"), let letter = line.dropFirst(2).utf8.first, line.utf8.count == 3 {
            self.init(text: String(UnicodeScalar(letter & 0x1F)), isShown: false)
        } else if line == "<<" || line.hasPrefix("<< ") {
            self.init(text: line.dropFirst(3) + "\n", isShown: true)
        } else if line == "<" || line.hasPrefix("< ") {
            self.init(text: line.dropFirst(2) + "\n", isShown: false)
        } else {
            return nil
        }
    }
}

// Each file in Scripts/ is a transcript: commands, their inputs, outputs, and exit codes. A transcript runs in an empty directory, which is
// HOME and the working directory. KEYCHAIN_HOME is a directory in it, and `valet` is on the PATH.
//
//   # text       a comment; `# as root`, `# not as root`, and `# only if command` are conditions for running the transcript,
//                and `# also with keychaind` runs it once more where keychaind keeps the keychain
//   $ command    run by /bin/sh; standard output and standard error are pipes, standard input is /dev/null
//   % command    run by /bin/sh on a pseudo-terminal
//   text         the next line of output: on standard output, or on the screen
//   ! text       the next line on standard error (after $)
//   << text      an input with Enter, after the lines above have appeared; the screen shows it (after %)
//   < text       the same, but the screen must not show it
//   <^C          a control character, which the screen must not show
//   ? number     the exit code, if it is not 0; 128 + n for signal n
//   \c           the line above does not end in a line break
//   \text        the line `text`, whatever its first character is; \ alone is an empty line
//
// In an expected line, … matches any text. The directory is shown as $HOME. Blanks at the end of a line and empty lines are ignored.
//
// Passcodes are cheap, except in the transcripts about passcodes with KEYCHAIN_TEST_SCALE=full: see TranscriptEnvironment.

@Suite("The command", .blocking)
struct TranscriptTests {
    /// The transcripts that run at the production cost of a passcode at full scale.
    private static let passcodeTranscripts: Set<String> = ["passcode.txt", "wrong-passcode.txt"]

    @Test("A transcript has the written outputs and exit codes", arguments: try Transcript.all())
    func transcript(_ transcript: Transcript) throws {
        // The test `allTranscriptsRun` reports the reasons.
        if let obstacle = try Self.obstacles.get()[transcript.name] { try Test.cancel("\(transcript.name): \(obstacle)") }
        let isExpensive = Scale.isFull && Self.passcodeTranscripts.contains(transcript.name)
        try TranscriptEnvironment.with(isExpensive ? .production : .cheap) { environment in
            // The kernel keyring outlives the directory.
            defer { _ = try? PipedRun.run(Transcript.Step(command: Self.removeKeys, isOnTerminal: false, line: 0), in: environment) }
            try Self.check(transcript, in: environment)
        }
    }

    private static func check(_ transcript: Transcript, in environment: TranscriptEnvironment) throws {
        for step in transcript.steps {
            let run = try step.isOnTerminal ? TerminalRun.run(step, in: environment) : PipedRun.run(step, in: environment)
            let difference = run.difference(from: step)
            #expect(difference == nil, "\(transcript.name), line \(step.line): \(step.command)\n\(difference ?? "")")
            let repetition = RunResult.errorSayingTwiceThatNothingWasChanged(in: run.standardError)
            #expect(repetition == nil, "\(transcript.name), line \(step.line)")
            // The later steps depend on this one.
            if difference != nil { return }
        }
    }

    @Test(
        "Where keychaind keeps the keychain, it has the same outputs and exit codes", .requiresMounts,
        arguments: try Transcript.all().filter(\.isForKeychaind))
    func throughKeychaind(_ transcript: Transcript) throws {
        if let obstacle = try Self.obstacles.get()[transcript.name] { try Test.cancel("\(transcript.name): \(obstacle)") }
        try TranscriptEnvironment.withKeychaind { try Self.check(transcript, in: $0) }
    }

    /// The transcripts that cannot run on this machine, by name, with the reasons.
    private static let obstacles = Result {
        let obstacles = try Transcript.all().compactMap { transcript in try transcript.obstacle().map { (transcript.name, $0) } }
        return Dictionary(uniqueKeysWithValues: obstacles)
    }

    private static let skipped: [String] = {
        do {
            return try obstacles.get().map { "\($0): \($1)" }.sorted()
        } catch {
            return ["\(error)"]
        }
    }()

    @Test("Every transcript can run on this machine", .enabled(if: skipped.isEmpty, "\(skipped.joined(separator: "; "))"))
    func allTranscriptsRun() throws {
        #expect(try Self.obstacles.get().isEmpty)
    }

    private static let removeKeys = "[ ! -e keychain/keychain.db ] || valet lock --all"

    @Test("The transcripts are found")
    func transcriptsExist() throws {
        #expect(try Transcript.all().count > 10, "skipped transcripts are counted too")
    }

    @Test(
        "With the preloaded policy a new passcode costs 1 MiB instead of 64 MiB",
        arguments: [(TranscriptEnvironment.PasscodeCost.cheap, 1), (.production, 64)])
    func passcodeCost(_ cost: TranscriptEnvironment.PasscodeCost, _ memoryMiB: Int) throws {
        try TranscriptEnvironment.with(cost) { environment in
            let set = Transcript.Step(
                command: "printf Druidia >passcode; valet passcode set --passcode-fd 3 3<passcode", isOnTerminal: false, line: 0)
            let run = try PipedRun.run(set, in: environment)
            defer { _ = try? PipedRun.run(Transcript.Step(command: Self.removeKeys, isOnTerminal: false, line: 0), in: environment) }
            #expect(run.exitCode == 0, "\(run.standardError)")
            #expect(try Self.recordedCosts(atPath: environment.path + "/keychain/keychain.db") == [memoryMiB])
        }
    }

    /// The memory costs, in MiB, of all passcode records in the files of a keychain; see the article On-disk format.
    ///
    /// A record is: tag 16, length 42, derivation 1 (scrypt), salt (32), log2 N (1), r (4), p (4).
    private static func recordedCosts(atPath path: String) throws -> Set<Int> {
        let files = try ["", "-wal"].map { path + $0 }.filter(FileManager.default.fileExists).map {
            try Data(contentsOf: URL(filePath: $0))
        }
        var costs: Set<Int> = []
        for bytes in files.map([UInt8].init) {
            for start in bytes.indices.dropLast(recordHeader.count + 41) where bytes[start...].starts(with: recordHeader) {
                let parameters = bytes[(start + recordHeader.count + 32)...].prefix(9)
                guard parameters.dropFirst() == [8, 0, 0, 0, 1, 0, 0, 0] else { continue }
                costs.insert((128 * 8 << Int(parameters[parameters.startIndex])) >> 20)
            }
        }
        return costs
    }

    private static let recordHeader: [UInt8] = [16, 0, 42, 0, 0, 0, 1]
}
