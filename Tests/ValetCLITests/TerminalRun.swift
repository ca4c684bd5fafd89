// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs a step on a pseudo-terminal, and types when what is expected has come out.
struct TerminalRun {
    // Of <asm-generic/ioctls.h>, which the C library's module leaves out.
    private static let unlock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430

    private let step: Transcript.Step
    private let folder: TemporaryFolder
    /// Our side of the terminal.
    private let screen: Int32
    private let deadline = Date(timeIntervalSinceNow: ChildProcess.deadlineSeconds)

    static func run(_ step: Transcript.Step, in folder: TemporaryFolder) throws -> RunResult {
        // All pointers here are used during the calls only.
        let screen = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        defer { close(screen) }
        var number: UInt32 = 0
        var isLocked: Int32 = 0
        guard screen >= 0, unsafe ioctl(screen, Self.unlock, &isLocked) == 0, unsafe ioctl(screen, Self.getNumber, &number) == 0
        else {
            throw ChildProcess.Failure(description: "no pseudo-terminal: error \(errno)")
        }
        var size = winsize(ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0)
        _ = unsafe ioctl(screen, UInt(TIOCSWINSZ), &size)
        // The first terminal that the leader of a session opens controls it.
        let child = try ChildProcess(
            step.command, in: folder, redirections: [.open("/dev/pts/\(number)", O_RDWR), .duplicate(0), .duplicate(0)]
        )
        let outputs = TerminalRun(step: step, folder: folder, screen: screen).converse()
        // Either it has ended, or it waits for something that will not come.
        if outputs.isUnfinished { child.kill() }
        return RunResult(outputs: outputs.texts, exitCode: child.wait())
    }

    private init(step: Transcript.Step, folder: TemporaryFolder, screen: Int32) {
        self.step = step
        self.folder = folder
        self.screen = screen
    }

    private func converse() -> (texts: [String], isUnfinished: Bool) {
        var texts: [String] = []
        for exchange in step.exchanges {
            var text = ""
            while !(exchange.typed != nil && RunResult.matches(text, exchange.output)) {
                var request = [pollfd(fd: screen, events: Int16(POLLIN), revents: 0)]
                guard DescriptorReader.wait(&request, until: deadline) else { return (texts + [text], true) }
                guard let chunk = DescriptorReader.read(screen) else { return (texts + [text], false) }
                text += shown(chunk)
            }
            texts.append(text)
            if let typed = exchange.typed, !type(typed) { return (texts, true) }
        }
        return (texts, false)
    }

    /// Types, and takes off what the terminal shows of it: the text if it may be shown, and the line break.
    ///
    /// False: something else came.
    private func type(_ typed: Transcript.Typed) -> Bool {
        let bytes = Array(typed.text.utf8)
        // The pointer is used during the call only.
        guard unsafe write(screen, bytes, bytes.count) == bytes.count else { return false }
        let shown = typed.isShown ? typed.text : typed.text.filter { $0 == "\n" }
        let echo = shown.replacingOccurrences(of: "\n", with: "\r\n").utf8
        for expected in echo {
            var request = [pollfd(fd: screen, events: Int16(POLLIN), revents: 0)]
            var byte: UInt8 = 0
            guard DescriptorReader.wait(&request, until: deadline), unsafe read(screen, &byte, 1) == 1, byte == expected else {
                return false
            }
        }
        return true
    }

    private func shown(_ chunk: Data) -> String {
        folder.anonymised(String(decoding: chunk, as: UTF8.self).replacingOccurrences(of: "\r\n", with: "\n"))
    }
}
