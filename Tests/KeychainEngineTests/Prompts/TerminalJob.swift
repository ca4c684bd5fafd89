// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainTestSupport

/// A program that asks on a pseudo-terminal, and the person in front of it.
final class TerminalJob {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    // Of <asm-generic/ioctls.h>, which the C library's module leaves out.
    private static let unlock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430
    private static let deadlineSeconds = 60.0

    /// What was shown so far, without carriage returns.
    private(set) var shown = ""
    private let screen: Int32
    private let folder: TemporaryDirectory
    private let child: ChildProcess

    /// Asks on the terminal, as `KEYCHAIN_PINENTRY` says, or through the one program that is `listed`.
    init(
        pinentry: String? = nil, isPinentrySet: Bool = true, listed: String? = nil, secret: String = "passcode",
        timeoutSeconds: Int = 60, expecting expected: String = "",
        inForeground: Bool = true, typingAhead typed: String = "", environment: [String: String] = [:]
    ) throws {
        // All pointers here are used during the calls only.
        screen = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var number: UInt32 = 0
        var isLocked: Int32 = 0
        guard screen >= 0, unsafe ioctl(screen, Self.unlock, &isLocked) == 0, unsafe ioctl(screen, Self.getNumber, &number) == 0
        else { throw Failure(description: "no pseudo-terminal: error \(errno)") }
        var size = winsize(ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0)
        _ = unsafe ioctl(screen, UInt(TIOCSWINSZ), &size)
        folder = try TemporaryDirectory()
        try expected.write(toFile: folder.path + "/expected", atomically: true, encoding: .utf8)
        // Echoed, since nobody has asked yet.
        if !typed.isEmpty { _ = unsafe write(screen, typed, typed.utf8.count) }
        var variables = ["KEYCHAIN_HOME": folder.path, "TERM": "vt100", "LANG": "C.UTF-8"]
        if isPinentrySet { variables["KEYCHAIN_PINENTRY"] = pinentry ?? "" }
        child = try ChildProcess(
            BuiltProgram.path(of: "KeychainTestChild"),
            [
                "ask-on-terminal", "/dev/pts/\(number)", inForeground ? "foreground" : "background", listed ?? "configured", secret,
                "\(timeoutSeconds)", folder.path + "/expected",
            ],
            environment: variables.merging(environment) { $1 })
    }

    deinit {
        close(screen)
    }

    /// Waits until that is shown, after everything that was waited for before; gives what came before it.
    @discardableResult
    func wait(for text: String) throws -> String {
        let deadline = Date(timeIntervalSinceNow: Self.deadlineSeconds)
        while true {
            if let range = shown.range(of: text) {
                let before = String(shown[..<range.lowerBound])
                shown.removeSubrange(..<range.upperBound)
                return before
            }
            var request = pollfd(fd: screen, events: Int16(POLLIN), revents: 0)
            var chunk = [UInt8](repeating: 0, count: 4_096)
            // One request, which is ours; as many bytes as the buffer has.
            guard Date() < deadline, unsafe poll(&request, 1, 1_000) >= 0 else { break }
            guard request.revents != 0 else { continue }
            let count = unsafe read(screen, &chunk, chunk.count)
            // A terminal whose last user is gone answers an error.
            guard count > 0 else { break }
            show(chunk.prefix(count))
        }
        throw Failure(description: "\(text) is not shown, but: \(shown)")
    }

    private func show(_ bytes: ArraySlice<UInt8>) {
        // As bytes: to a string, a carriage return and a line feed are one character.
        shown += String(decoding: bytes.filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
    }

    func type(_ text: String) {
        // As many bytes as the text has.
        _ = unsafe write(screen, text, text.utf8.count)
    }

    /// What the program says of its answer and itself, and what its shell says of the terminal, to the end.
    func report() throws -> [String] {
        let report = try child.readToEnd(withinSeconds: Self.deadlineSeconds)
        _ = try child.waitUntilEnded()
        return report.split(separator: "\n").map(String.init)
    }

    /// The next line of it.
    func nextReport() throws -> String? { try child.readLine(withinSeconds: Self.deadlineSeconds) }

    /// All that is shown and was not waited for.
    func remainder() -> String {
        var request = pollfd(fd: screen, events: Int16(POLLIN), revents: 0)
        var chunk = [UInt8](repeating: 0, count: 4_096)
        // As above.
        while unsafe poll(&request, 1, 0) > 0, case let count = unsafe read(screen, &chunk, chunk.count), count > 0 {
            show(chunk.prefix(count))
        }
        return shown
    }

    /// The process that asks.
    var askingProcess: pid_t? {
        let children = "/proc/\(child.processID)/task/\(child.processID)/children"
        return (try? String(contentsOfFile: children, encoding: .utf8)).flatMap { pid_t($0.split(separator: " ").first ?? "") }
    }
}
