// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// A story from `Scripts/`, parsed.
///
/// The format is described in TranscriptTests.swift.
struct Transcript: Sendable, CustomTestStringConvertible {
    /// A command, and what is expected of it.
    struct Step: Sendable {
        let command: String
        let isOnTerminal: Bool
        /// Counted from 1.
        let line: Int
        var exchanges: [Exchange] = [Exchange()]
        var standardError = ""
        var exitCode: Int32 = 0
    }

    /// What comes out, and then what is typed, if anything.
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
    /// Nil: for everybody.
    private var isForRoot: Bool?
    /// Commands that must succeed for the story to be told.
    private var conditions: [String] = []
    private(set) var steps: [Step] = []

    var testDescription: String { name }

    static func all() throws -> [Transcript] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Scripts")
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".txt") }.sorted().map {
            try Transcript(name: $0, text: String(contentsOf: folder.appending(path: $0), encoding: .utf8))
        }
    }

    /// Why the story cannot be told here, as this user; nil when it can.
    func obstacle() throws -> String? {
        if let isForRoot, isForRoot != (getuid() == 0) { return isForRoot ? "only root can run it" : "root cannot run it" }
        let failing = try conditions.first { command in
            try TemporaryFolder.with { try PipedRun.run(Step(command: command, isOnTerminal: false, line: 0), in: $0).exitCode != 0 }
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

    /// False: the line has no place here.
    private mutating func add(_ line: String, number: Int) throws -> Bool {
        if line == "# as root" { isForRoot = true }
        if line == "# not as root" { isForRoot = false }
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
            // What is typed comes after a question, and that does not end its line.
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

// Each file in Scripts/ is a story: commands, what is typed, what comes out, how they exit. It runs in an empty folder of its own,
// which is HOME and the working directory; KEYCHAIN_HOME is a folder in it, and `valet` is on the PATH.
//
//   # text       a comment; `# as root` and `# not as root` say who alone can run the story, `# only if command` what must succeed
//   $ command    run by /bin/sh; standard output and standard error are pipes, standard input is /dev/null
//   % command    run by /bin/sh on a pseudo-terminal
//   text         the next line that comes out: on standard output, or on the screen
//   ! text       the next line on standard error (after $)
//   << text      typed, with Enter, once the lines above have come out, and shown on the screen (after %)
//   < text       the same, but the screen must not show it
//   <^C          one control character, which the screen must not show
//   ? number     how it exits, if not with 0; 128 + n for signal n
//   \c           the line above does not end in a line break
//   \text        the line `text`, whatever it begins with; \ alone is an empty line
//
// In a line that is expected, … stands for any text. The folder is shown as $HOME. Blanks at the end of a line do not count, and empty
// lines are for the eye only.

@Suite("The command")
struct TranscriptTests {
    @Test("A story runs as it is written", arguments: try Transcript.all())
    func story(_ transcript: Transcript) throws {
        // Which ones, and why, is said by the test below.
        if let obstacle = try transcript.obstacle() { try Test.cancel("\(transcript.name): \(obstacle)") }
        try TemporaryFolder.with { folder in
            // The kernel's keyring outlives the folder.
            defer { _ = try? PipedRun.run(Transcript.Step(command: Self.forgetting, isOnTerminal: false, line: 0), in: folder) }
            for step in transcript.steps {
                let run = try step.isOnTerminal ? TerminalRun.run(step, in: folder) : PipedRun.run(step, in: folder)
                let difference = run.difference(from: step)
                #expect(difference == nil, "\(transcript.name), line \(step.line): \(step.command)\n\(difference ?? "")")
                // What follows builds on it.
                if difference != nil { return }
            }
        }
    }

    /// The stories that cannot be told here, with the reason.
    private static let untold: [String] = {
        do {
            return try Transcript.all().compactMap { story in try story.obstacle().map { "\(story.name): \($0)" } }
        } catch {
            return ["\(error)"]
        }
    }()

    @Test("Every story can be told here", .enabled(if: untold.isEmpty, "\(untold.joined(separator: "; "))"))
    func allTranscriptsRun() throws {
        for story in try Transcript.all() { #expect(try story.obstacle() == nil, "\(story.name)") }
    }

    private static let forgetting = "[ ! -e keychain/keychain.db ] || valet lock --all"

    @Test("There are stories")
    func transcriptsExist() throws {
        #expect(try Transcript.all().count > 10, "those that cannot be told here are counted too")
    }
}
