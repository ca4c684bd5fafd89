// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine

/// The next line of a file descriptor, read byte by byte: what follows is somebody else's.
struct PasscodeLine {
    let descriptor: Int32
    /// The one that names the descriptor.
    let option: String

    /// Descriptors are waited for as long as persons are.
    private static let patienceSeconds = 5 * 60.0

    /// The line without its end; nil where there is none any more.
    ///
    /// The caller wipes it.
    func read() throws(CommandFailure) -> [UInt8]? {
        guard InheritedDescriptors.contains(descriptor) else { throw unreadable(EBADF) }
        guard isatty(descriptor) == 0 else {
            throw CommandFailure(
                .usage, "descriptor \(descriptor) is a terminal, which would show what is typed",
                advice: "Leave out \(option) to be asked without echo, or name a file or a pipe."
            )
        }
        var line: [UInt8] = []
        // Never moved while it grows, so that no copy is left behind; one byte more than is allowed, for a line break or to be refused.
        line.reserveCapacity(Passcode.largestByteCount + 2)
        let deadline = Date(timeIntervalSinceNow: Self.patienceSeconds)
        var isEnded = false
        do throws(CommandFailure) {
            while !isEnded, line.count <= Passcode.largestByteCount + 1 {
                guard let byte = try readByte(until: deadline) else {
                    guard !line.isEmpty else { return nil }
                    break
                }
                isEnded = byte == UInt8(ascii: "\n")
                if !isEnded { line.append(byte) }
            }
        } catch {
            line.wipe()
            throw error
        }
        // A carriage return cannot be typed: it belongs to the line break.
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        return line
    }

    /// Nil at the end.
    private func readByte(until deadline: Date) throws(CommandFailure) -> UInt8? {
        while true {
            // The pointers are used during the calls only.
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let rest = deadline.timeIntervalSinceNow
            let ready = rest > 0 ? unsafe poll(&request, 1, Int32(rest * 1000)) : 0
            guard ready != 0 else {
                throw CommandFailure(
                    .unavailable, "nothing came from descriptor \(descriptor), and nothing was changed", advice: "Check what writes to it.")
            }
            var byte: UInt8 = 0
            let count = ready > 0 ? unsafe Foundation.read(descriptor, &byte, 1) : -1
            if count > 0 { return byte }
            if count == 0 { return nil }
            if errno == EINTR || errno == EAGAIN { continue }
            throw unreadable(errno)
        }
    }

    private func unreadable(_ errorNumber: Int32) -> CommandFailure {
        CommandFailure(
            .usage, "descriptor \(descriptor) cannot be read: \(FileDescriptor.message(errorNumber))",
            advice: "Open it for the command, such as \(option) 3 3<file."
        )
    }
}
