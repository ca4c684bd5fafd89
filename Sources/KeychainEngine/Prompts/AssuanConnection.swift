// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// A connection to a pinentry program: one request at a time, each with its answer.
///
/// Source: the libassuan manual, "Server responses".
struct AssuanConnection: ~Copyable {
    enum Answer {
        case ok
        case error(PinentryError)
    }

    private enum Line {
        case answer(Answer)
        case data, status, inquiry, comment
    }

    private let process: any AssuanServer
    private var received: SecretBuffer
    /// The decoded data of the last answer.
    private(set) var data: SecretBuffer
    /// Whether the program reported that the person repeated the new password correctly.
    private(set) var isRepeated = false

    /// More lines than any answer needs.
    private static let lineLimit = 1_000

    init(_ process: any AssuanServer) throws(PresenceRefusal) {
        let received = try SecretBuffer(answerCapacity: AssuanRequest.lineByteLimit)
        let data = try SecretBuffer(answerCapacity: Passcode.largestByteCount)
        self.process = process
        self.received = received
        self.data = data
    }

    /// Sends a request and waits for its answer.
    ///
    /// Throws `.timedOut` if the program is silent until the deadline, `.canceled` if the process is to end, and `.failed` for an invalid
    /// answer.
    mutating func request(
        _ command: String, _ text: String? = nil, until deadline: Deadline
    ) throws(PresenceRefusal) -> Answer {
        try send(AssuanRequest.line(command, text))
        return try answer(until: deadline)
    }

    /// Waits for an answer, or for the greeting that the program sends first.
    mutating func answer(until deadline: Deadline) throws(PresenceRefusal) -> Answer {
        data.clear()
        isRepeated = false
        for _ in 0..<Self.lineLimit {
            let end = try nextLine(until: deadline)
            let line = try read(end: end)
            if case .inquiry = line {
                // Programs inquire only the quality of a new password, and an empty answer is valid.
                let isQuality = hasPrefix("INQUIRE QUALITY", end: end)
                try send(AssuanRequest.line(isQuality ? "END" : "CAN"))
            }
            received.removeFirst(end + 1)
            if case .answer(let answer) = line { return answer }
        }
        throw .failed("the pinentry program answers with too many lines")
    }

    private func send(_ line: [UInt8]) throws(PresenceRefusal) {
        do throws(Errno) {
            try process.send(line)
        } catch {
            throw .failed("the pinentry program accepts no more requests")
        }
    }

    /// Reads until the buffer begins with a whole line, and returns the index of its line feed.
    private mutating func nextLine(until deadline: Deadline) throws(PresenceRefusal) -> Int {
        var searched = 0
        while true {
            while searched < received.count {
                if received[searched] == UInt8(ascii: "\n") { return searched }
                searched += 1
            }
            guard received.count < received.capacity else { throw .failed("the pinentry program writes a line that is too long") }
            guard !deadline.isOver, try wait(until: deadline) else {
                guard received.count == 0 else { throw .failed("the pinentry program stopped in the middle of a line") }
                throw .timedOut
            }
            try receive()
        }
    }

    /// Waits for output or for the end of the program; returns false at the deadline.
    private func wait(until deadline: Deadline) throws(PresenceRefusal) -> Bool {
        switch try? process.wait(until: deadline) {
        case .ready: return true
        case .interrupted: throw .canceled
        case .timedOut: return false
        case nil: throw .failed("the pinentry program cannot be waited for")
        }
    }

    private mutating func receive() throws(PresenceRefusal) {
        // Asked before reading: everything that the program wrote before its end can be read by then.
        let hasEnded = process.hasEnded
        let output = process.output
        let countBefore = received.count
        do throws(Errno) {
            // The free part of the buffer.
            try unsafe received.append { (buffer) throws(Errno) in try unsafe output.read(into: buffer) }
            if received.count > countBefore { return }
        } catch .wouldBlock {
            // Another process may still have the program's output open.
            if !hasEnded { return }
        } catch {}
        throw .failed("the pinentry program ended without an answer")
    }

    private mutating func read(end: Int) throws(PresenceRefusal) -> Line {
        if isCommand("OK", end: end) { return .answer(.ok) }
        if isCommand("ERR", end: end) { return .answer(.error(try errorNumber(end: end))) }
        if hasPrefix("D ", end: end) {
            // A carriage return before the line feed is part of the line end: in data it is escaped.
            try decode(from: 2, to: received[end - 1] == UInt8(ascii: "\r") ? end - 1 : end)
            return .data
        }
        if isCommand("S", end: end) {
            if isCommand("S PIN_REPEATED", end: end) { isRepeated = true }
            return .status
        }
        if isCommand("INQUIRE", end: end) { return .inquiry }
        if hasPrefix("#", end: end) { return .comment }
        throw .failed("the pinentry program writes an invalid answer")
    }

    private func hasPrefix(_ prefix: StaticString, end: Int) -> Bool {
        let bytes = Array("\(prefix)".utf8)
        return bytes.count <= end && bytes.indices.allSatisfy { received[$0] == bytes[$0] }
    }

    /// Whether the line consists of or begins with a word.
    private func isCommand(_ name: StaticString, end: Int) -> Bool {
        guard hasPrefix(name, end: end) else { return false }
        let length = name.utf8CodeUnitCount
        return length == end || received[length] == UInt8(ascii: " ") || received[length] == UInt8(ascii: "\r")
    }

    private func errorNumber(end: Int) throws(PresenceRefusal) -> PinentryError {
        var number: UInt32 = 0
        var digitCount = 0
        var index = "ERR ".utf8.count
        while index < end, case let digit = received[index], (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit), digitCount < 10 {
            number = number &* 10 &+ UInt32(digit - UInt8(ascii: "0"))
            digitCount += 1
            index += 1
        }
        guard digitCount > 0 else { throw .failed("the pinentry program answers an error without a number") }
        return PinentryError(number: number)
    }

    /// Appends the decoded content of a data line.
    private mutating func decode(from start: Int, to end: Int) throws(PresenceRefusal) {
        var index = start
        while index < end {
            var byte = received[index]
            index += 1
            if byte == UInt8(ascii: "%") {
                guard index + 1 < end, let high = Self.value(received[index]), let low = Self.value(received[index + 1]) else {
                    throw .failed("the pinentry program escapes its data wrongly")
                }
                byte = high << 4 | low
                index += 2
            }
            guard data.append(byte) else { throw .failed("more was typed than the \(data.capacity) bytes that are accepted") }
        }
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

extension SecretBuffer {
    /// An empty buffer.
    ///
    /// Throws `.failed` if there is no memory.
    init(answerCapacity capacity: Int) throws(PresenceRefusal) {
        do throws(KeychainFailure) {
            self = try SecretBuffer(capacity: capacity)
        } catch {
            throw .failed(error.reason)
        }
    }

    /// The bytes as an answer.
    func answer() throws(PresenceRefusal) -> PresenceAnswer {
        do throws(KeychainFailure) {
            guard let secret = try secret() else { return .empty }
            return .secret(secret)
        } catch {
            throw .failed(error.reason)
        }
    }
}

/// The encoding of a request to a pinentry program as one line.
///
/// Source: the libassuan manual, "Client requests": at most 1000 bytes with the line feed; `%` and control characters are written as `%`
/// and two digits.
package enum AssuanRequest {
    package static let lineByteLimit = 1_000
    private static let ellipsis = Array("…".utf8)

    /// The line with its line feed; a text that is too long is cut off after a whole character, with an ellipsis.
    package static func line(_ command: String, _ text: String? = nil) -> [UInt8] {
        guard let text else { return Array(command.utf8) + [UInt8(ascii: "\n")] }
        var line = Array(command.utf8) + [UInt8(ascii: " ")]
        var characters = text[...]
        // The end of the last character after which an ellipsis still fits.
        var cut = line.count
        while let character = characters.popFirst() {
            line += escaped(character)
            if line.count + ellipsis.count < lineByteLimit { cut = line.count }
            guard line.count < lineByteLimit else {
                line.removeSubrange(cut...)
                return line + ellipsis + [UInt8(ascii: "\n")]
            }
        }
        return line + [UInt8(ascii: "\n")]
    }

    private static func escaped(_ character: Character) -> [UInt8] {
        character.utf8.flatMap { byte in
            byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "%") ? [UInt8(ascii: "%"), digit(byte >> 4), digit(byte & 0xF)] : [byte]
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}

/// The program at the other end of an Assuan connection.
protocol AssuanServer {
    /// The output of the program, to be read without blocking.
    var output: FileDescriptor { get }

    var hasEnded: Bool { get }

    /// Writes one line; the program reads each line before it is sent another.
    func send(_ line: [UInt8]) throws(Errno)

    /// Waits for output or for the end of the program.
    func wait(until deadline: Deadline) throws(Errno) -> PipedProcess.Wait
}

extension PipedProcess: AssuanServer {}
