// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import KeychainCore

/// Requests to a pinentry program and its answers, one after the other.
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
    /// The data of the last answer, decoded.
    private(set) var data: SecretBuffer
    /// Whether the last answer said that the person typed the same twice.
    private(set) var isRepeated = false

    /// Nobody's answer needs as many lines.
    private static let lineLimit = 1_000

    init(_ process: any AssuanServer) throws(PresenceRefusal) {
        let received = try SecretBuffer(capacity: AssuanRequest.lineByteLimit)
        let data = try SecretBuffer(capacity: Passcode.largestByteCount)
        self.process = process
        self.received = received
        self.data = data
    }

    /// Sends a request and waits for its answer.
    ///
    /// Throws `.timedOut` when the program is silent until the deadline, `.failed` for what is no answer.
    mutating func request(
        _ command: String, _ text: String? = nil, until deadline: PromptDeadline
    ) throws(PresenceRefusal) -> Answer {
        try process.send(AssuanRequest.line(command, text))
        return try answer(until: deadline)
    }

    /// Waits for an answer, or for the greeting, which is one to no request.
    mutating func answer(until deadline: PromptDeadline) throws(PresenceRefusal) -> Answer {
        data.clear()
        isRepeated = false
        for _ in 0..<Self.lineLimit {
            let end = try nextLine(until: deadline)
            let line = try read(end: end)
            if case .inquiry = line {
                // The one inquiry that programs make is how good a new password is; nothing is as good an answer as any.
                let isQuality = hasPrefix("INQUIRE QUALITY", end: end)
                try process.send(AssuanRequest.line(isQuality ? "END" : "CAN"))
            }
            received.removeFirst(end + 1)
            if case .answer(let answer) = line { return answer }
        }
        throw .failed("the pinentry program says too much")
    }

    /// Where the line ends that begins the buffer.
    private mutating func nextLine(until deadline: PromptDeadline) throws(PresenceRefusal) -> Int {
        var searched = 0
        while true {
            while searched < received.count {
                if received[searched] == UInt8(ascii: "\n") { return searched }
                searched += 1
            }
            guard received.count < received.capacity else { throw .failed("the pinentry program writes a line that is too long") }
            guard !deadline.isOver, try process.wait(until: deadline) else {
                guard received.count == 0 else { throw .failed("the pinentry program stopped in the middle of a line") }
                throw .timedOut
            }
            // Asked before reading: what it wrote before its end is there by then.
            let isOver = process.isOver
            let count = received.read(from: process.output)
            let code = errno
            if count > 0 { continue }
            // Another process may have its output open still.
            guard !isOver, count < 0, code == EAGAIN || code == EINTR else { throw .failed("the pinentry program ended without an answer") }
        }
    }

    private mutating func read(end: Int) throws(PresenceRefusal) -> Line {
        if isCommand("OK", end: end) { return .answer(.ok) }
        if isCommand("ERR", end: end) { return .answer(.error(try errorNumber(end: end))) }
        if hasPrefix("D ", end: end) {
            // A return before the end belongs to the end: in data it is escaped.
            try decode(from: 2, to: received[end - 1] == UInt8(ascii: "\r") ? end - 1 : end)
            return .data
        }
        if isCommand("S", end: end) {
            if isCommand("S PIN_REPEATED", end: end) { isRepeated = true }
            return .status
        }
        if isCommand("INQUIRE", end: end) { return .inquiry }
        if hasPrefix("#", end: end) { return .comment }
        throw .failed("the pinentry program writes what is no answer")
    }

    private func hasPrefix(_ prefix: StaticString, end: Int) -> Bool {
        let bytes = Array("\(prefix)".utf8)
        return bytes.count <= end && bytes.indices.allSatisfy { received[$0] == bytes[$0] }
    }

    /// Whether that is the line, or its beginning before a space.
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

    /// Appends what a line of data stands for.
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
            guard data.append(byte) else { throw .failed("more was typed than the \(data.capacity) bytes that are taken") }
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

/// One line that is sent to a pinentry program.
///
/// Source: the libassuan manual, "Client requests": at most 1000 bytes with the line feed; `%` and what would end the line are
/// written as `%` and two digits.
package enum AssuanRequest {
    package static let lineByteLimit = 1_000
    private static let ellipsis = Array("…".utf8)

    /// The line, with its end; a text that is too long ends at a whole character, with an ellipsis.
    package static func line(_ command: String, _ text: String? = nil) -> [UInt8] {
        guard let text else { return Array(command.utf8) + [UInt8(ascii: "\n")] }
        var line = Array(command.utf8) + [UInt8(ascii: " ")]
        var characters = text[...]
        // Where an ellipsis would still fit behind it.
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
    /// What the program writes, for reading without blocking.
    var output: Int32 { get }

    /// Whether the program has ended by now.
    var isOver: Bool { get }

    /// Writes one line; the program reads each before it is sent another.
    func send(_ line: [UInt8]) throws(PresenceRefusal)

    /// Waits for output or for the end of the program; false at the deadline.
    ///
    /// Throws `.canceled` when the job is to end.
    func wait(until deadline: PromptDeadline) throws(PresenceRefusal) -> Bool
}
