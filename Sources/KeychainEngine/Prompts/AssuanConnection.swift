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
