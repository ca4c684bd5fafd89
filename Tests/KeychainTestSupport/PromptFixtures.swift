// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Synchronization

/// A pinentry program with scripted behavior, in its own folder.
package struct ScriptedPinentryProgram {
    package let path: String
    package let name: String
    private let folder: TemporaryDirectory

    /// The program is `ScriptedPinentry`.
    package init(_ steps: [String]) throws {
        folder = try TemporaryDirectory()
        // A unique name of at most 15 bytes, the limit of the kernel for process names.
        name = "pinentry-\(UInt32.random(in: 0...999_999))"
        path = folder.path + "/" + name
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: try BuiltProgram.path(of: "KeychainTestChild"))
        try steps.joined(separator: "\n").write(toFile: path + ".script", atomically: true, encoding: .utf8)
    }

    /// First the environment of the program, then the requests to it.
    package var log: String { (try? String(contentsOfFile: path + ".log", encoding: .utf8)) ?? "" }
}

/// A terminal whose other end is the test.
package final class PseudoTerminal: Sendable {
    package struct Unavailable: Error {
        let errorNumber: Int32
    }

    // Of <asm-generic/ioctls.h>, which the C library's module leaves out.
    private static let unlock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430
    private static let deadlineSeconds = 60.0

    package let name: String
    private let screen: Int32
    /// Keeps the terminal while no program has it open; negative if that ends it.
    private let keeper: Int32
    private let output = Mutex("")

    /// `isKept`: whether it goes on when no program has it open.
    package init(isKept: Bool = false) throws {
        // All pointers here are used during the calls only.
        screen = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var number: UInt32 = 0
        var isLocked: Int32 = 0
        guard screen >= 0, unsafe ioctl(screen, Self.unlock, &isLocked) == 0, unsafe ioctl(screen, Self.getNumber, &number) == 0
        else { throw Unavailable(errorNumber: errno) }
        var size = winsize(ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0)
        _ = unsafe ioctl(screen, UInt(TIOCSWINSZ), &size)
        name = "/dev/pts/\(number)"
        keeper = isKept ? unsafe open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1
    }

    deinit {
        if keeper >= 0 { close(keeper) }
        close(screen)
    }

    /// The output that no call has waited for, as far as it was read, without carriage returns.
    package var shown: String { output.withLock { $0 } }

    /// Waits until `text` appears after the text of the previous wait, and returns the output before it.
    ///
    /// Returns nil if the time of a test is over, or if no program has the terminal open any more.
    package func wait(for text: String) -> String? {
        let deadline = Date(timeIntervalSinceNow: Self.deadlineSeconds)
        repeat {
            let before = output.withLock { output -> String? in
                guard let range = output.range(of: text) else { return nil }
                defer { output.removeSubrange(..<range.upperBound) }
                return String(output[..<range.lowerBound])
            }
            if let before { return before }
        } while Date() < deadline && readOutput(waitingMilliseconds: 1_000) != nil
        return nil
    }

    /// Reads what is there; returns whether anything was, or nil if no program has the terminal open any more.
    package func readOutput(waitingMilliseconds: Int32) -> Bool? {
        var request = pollfd(fd: screen, events: Int16(POLLIN), revents: 0)
        var chunk = [UInt8](repeating: 0, count: 4_096)
        // One request, which is ours; as many bytes as the buffer has.
        let readyCount = unsafe poll(&request, 1, waitingMilliseconds)
        guard readyCount > 0 else { return readyCount == 0 ? false : nil }
        let count = unsafe read(screen, &chunk, chunk.count)
        // Reading a pseudo-terminal that no process has open fails.
        guard count > 0 else { return nil }
        // As bytes: to a string, a carriage return and a line feed are one character.
        let text = String(decoding: chunk.prefix(count).filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        output.withLock { $0 += text }
        return true
    }

    package func type(_ text: String) {
        // As many bytes as the text has.
        _ = unsafe write(screen, text, text.utf8.count)
    }
}
