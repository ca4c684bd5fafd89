// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// A pinentry program that does what a file says: it is this program under another name, and the file lies beside that name.
///
/// Each line is a step: `say TEXT` with a line break, `put TEXT` without, `until REQUEST` (everything before it is granted), `refuse
/// REQUEST` (from now on, with an error), `flood TEXT` for ever, `sleep MILLISECONDS`, `die`, `ignore-signals`, `close-output`. At the
/// end it waits for the end of its input. What it was asked goes to another file.
enum ScriptedPinentry {
    static let prefix = "pinentry-"

    static func run(path: String) throws {
        let log = path + ".log"
        _ = FileManager.default.createFile(atPath: log, contents: nil)
        let writer = try FileHandle(forWritingTo: URL(filePath: log))
        let variables = ProcessInfo.processInfo.environment.keys.sorted().joined(separator: " ")
        writer.write(Data("environment \(variables)\n".utf8))
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        writer.write(Data("descriptors \(descriptors)\n".utf8))
        writer.write(Data("session \(getsid(0) == getpid() ? "own" : "shared")\n".utf8))
        var refused: [String] = []
        for step in try String(contentsOfFile: path + ".script", encoding: .utf8).split(separator: "\n") {
            let words = step.split(separator: " ", maxSplits: 1)
            let rest = words.count > 1 ? String(words[1]) : ""
            switch words[0] {
            case "say": say(rest)
            case "put": put(rest)
            case "until":
                while let request = readLine() {
                    writer.write(Data("\(request)\n".utf8))
                    if request.hasPrefix(rest) { break }
                    say(refused.contains { request.hasPrefix($0) } ? "ERR 83886254 Unknown option <Pinentry>" : "OK")
                }
            case "refuse": refused.append(rest)
            case "flood": while true { put(rest) }
            case "flood-lines": while true { say(rest) }
            case "sleep": usleep((UInt32(rest) ?? 0) * 1_000)
            case "die": kill(getpid(), SIGKILL)
            case "ignore-signals": signal(SIGTERM, SIG_IGN)
            case "close-output": close(1)
            default: throw BadArguments()
            }
        }
        while let request = readLine() { writer.write(Data("\(request)\n".utf8)) }
    }

    private static func put(_ text: String) {
        let bytes = Array(text.utf8)
        // As many bytes as the text has. Nobody listens any more: done.
        if unsafe write(1, bytes, bytes.count) < 0 { exit(1) }
    }
}
