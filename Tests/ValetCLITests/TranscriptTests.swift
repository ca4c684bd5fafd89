// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

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
    func allTold() throws {
        for story in try Transcript.all() { #expect(try story.obstacle() == nil, "\(story.name)") }
    }

    private static let forgetting = "[ ! -e keychain/keychain.db ] || valet lock --all"

    @Test("There are stories")
    func storiesAreFound() throws {
        #expect(try Transcript.all().count > 10, "those that cannot be told here are counted too")
    }
}
