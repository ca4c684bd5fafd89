// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// A question to a pinentry program, from the greeting to the answer.
struct PinentryDialog: ~Copyable {
    private var connection: AssuanConnection
    private let text: PresenceText
    private let place: PromptLocation
    private let environment: PromptEnvironment
    private let deadline: Deadline

    /// How long a program may take to answer a request that needs no person.
    private static let responseLimitMilliseconds: UInt64 = 10_000
    private static let attemptCount = 3

    init(
        _ process: PipedProcess, _ text: PresenceText, place: PromptLocation, environment: PromptEnvironment, deadline: Deadline
    ) throws(PresenceRefusal) {
        connection = try AssuanConnection(process)
        self.text = text
        self.place = place
        self.environment = environment
        self.deadline = deadline
    }

    mutating func run() throws(PresenceRefusal) -> PresenceAnswer {
        guard
            case .ok = try withResponseDeadline({ (connection, deadline) throws(PresenceRefusal) in try connection.answer(until: deadline) }
            )
        else {
            throw .failed("the pinentry program refuses to start")
        }
        try sendLocationOptions()
        // Zero would mean no timeout. Earlier than our own deadline, so that the program can restore its terminal itself.
        let seconds = max(1, deadline.remainingSeconds)
        try sendOptional("SETTIMEOUT", "\(seconds > 2 ? seconds - 1 : seconds)")
        try sendOptional("SETTITLE", text.title)
        try sendRequired("SETDESC", text.description)
        if let choice = text.choice { return try choose(choice) }
        if text.isConfirmation { return try confirm() }
        try sendRequired("SETPROMPT", text.prompt)
        if let error = text.error { try sendOptional("SETERROR", error) }
        // A single underscore marks the access key of a button.
        if let title = text.cancelTitle {
            try sendOptional("SETCANCEL", title.split(separator: "_", omittingEmptySubsequences: false).joined(separator: "__"))
        }
        guard let repeatPrompt = text.repeatPrompt else { return try enter() }
        try sendOptional("SETREPEAT", repeatPrompt)
        try sendOptional("SETREPEATERROR", PresenceText.entriesDifferMessage)
        return try enterTwice(repeatPrompt)
    }

    /// Shows the description with one button, which cancels.
    private mutating func confirm() throws(PresenceRefusal) -> PresenceAnswer {
        try sendOptional(
            "SETOK", (text.cancelTitle ?? "Cancel").split(separator: "_", omittingEmptySubsequences: false).joined(separator: "__"))
        let remaining = deadline.remainingNanoseconds
        switch try connection.request("CONFIRM", "--one-button", until: deadline) {
        case .ok: return .empty
        case .error(let error): throw error.refusal(canShow: place.canShow, isEarly: deadline.remainingNanoseconds > remaining / 2)
        }
    }

    /// Sends the options that say where and in which language to ask; the program may ignore them.
    private mutating func sendLocationOptions() throws(PresenceRefusal) {
        if let name = place.terminalName { try sendOptional("OPTION", "ttyname=\(name)") }
        let options = [
            ("ttytype", environment["TERM"]), ("lc-ctype", environment.locale("LC_CTYPE")),
            ("lc-messages", environment.locale("LC_MESSAGES")), ("display", environment["DISPLAY"]),
        ]
        for case (let name, let value?) in options { try sendOptional("OPTION", "\(name)=\(value)") }
    }

    /// Asks for a new password twice, unless the program does so itself.
    private mutating func enterTwice(_ repeatPrompt: String) throws(PresenceRefusal) -> PresenceAnswer {
        for _ in 0..<Self.attemptCount {
            if try getPIN(isNew: true) {
                if connection.data.count == 0 || connection.isRepeated { return try connection.data.answer() }
                var first = try SecretBuffer(answerCapacity: connection.data.capacity)
                for index in 0..<connection.data.count { _ = first.append(connection.data[index]) }
                try sendRequired("SETPROMPT", repeatPrompt)
                if try getPIN(isNew: true), first.isEqual(to: connection.data) { return try first.answer() }
                try sendRequired("SETPROMPT", text.prompt)
            }
            try sendOptional("SETERROR", PresenceText.entriesDifferMessage)
        }
        throw .failed("the two entries differed every time")
    }

    private mutating func enter() throws(PresenceRefusal) -> PresenceAnswer {
        _ = try getPIN(isNew: false)
        return try connection.data.answer()
    }

    /// Shows two buttons; throws `.canceled` for the one that refuses.
    private mutating func choose(_ choice: PresenceText.Choice) throws(PresenceRefusal) -> PresenceAnswer {
        try sendRequired("SETOK", choice.allow)
        try sendRequired("SETCANCEL", choice.refuse)
        let remaining = deadline.remainingNanoseconds
        switch try connection.request("CONFIRM", until: deadline) {
        case .ok: return .empty
        case .error(let error): throw error.refusal(canShow: place.canShow, isEarly: deadline.remainingNanoseconds > remaining / 2)
        }
    }

    /// Requests the secret; returns false if the person did not repeat a new password correctly.
    private mutating func getPIN(isNew: Bool) throws(PresenceRefusal) -> Bool {
        let remaining = deadline.remainingNanoseconds
        switch try connection.request("GETPIN", until: deadline) {
        case .ok: return true
        case .error(let error):
            if isNew, error.isUnconfirmed { return false }
            throw error.refusal(canShow: place.canShow, isEarly: deadline.remainingNanoseconds > remaining / 2)
        }
    }

    /// Sends a request that the program may refuse.
    private mutating func sendOptional(_ command: String, _ text: String) throws(PresenceRefusal) {
        _ = try withResponseDeadline { (connection, deadline) throws(PresenceRefusal) in
            try connection.request(command, text, until: deadline)
        }
    }

    /// Sends a request without which the question is incomplete.
    private mutating func sendRequired(_ command: String, _ text: String) throws(PresenceRefusal) {
        let answer = try withResponseDeadline { (connection, deadline) throws(PresenceRefusal) in
            try connection.request(command, text, until: deadline)
        }
        guard case .ok = answer else { throw .failed("the pinentry program refuses \(command)") }
    }

    /// Runs a request that needs no person; a timeout is a failure of the program.
    private mutating func withResponseDeadline(
        _ body: (inout AssuanConnection, Deadline) throws(PresenceRefusal) -> AssuanConnection.Answer
    ) throws(PresenceRefusal) -> AssuanConnection.Answer {
        do throws(PresenceRefusal) {
            return try body(&connection, min(deadline, .after(milliseconds: Self.responseLimitMilliseconds)))
        } catch .timedOut {
            throw .failed("the pinentry program does not answer")
        } catch {
            throw error
        }
    }
}

/// The number behind `ERR`: a source in the upper half, a code in the lower.
///
/// Source: gpg-error.h (libgpg-error). An error of the system is 32768 plus that library's own number for it, which differs from errno.
package struct PinentryError: Hashable, Sendable {
    package let code: UInt32

    package init(number: UInt32) {
        code = number & 0xFFFF
    }

    /// `GPG_ERR_NOT_CONFIRMED`: the person did not repeat the password correctly.
    var isUnconfirmed: Bool { code == 114 }

    /// The reason why the question was not answered.
    ///
    /// Without a terminal and a display, "canceled" cannot come from a person. pinentry-tty reports ^C as a timeout, so a timeout before
    /// half of the time has passed is a cancellation.
    package func refusal(canShow: Bool, isEarly: Bool) -> PresenceRefusal {
        switch code {
        // GPG_ERR_CANCELED, GPG_ERR_FULLY_CANCELED, GPG_ERR_NOT_CONFIRMED, GPG_ERR_ASS_CANCELED
        case 99, 198, 114, 277: canShow ? .canceled : .promptUnavailable("the pinentry program has neither a terminal nor a display")
        // GPG_ERR_TIMEOUT
        case 62: isEarly ? (canShow ? .canceled : .promptUnavailable("the pinentry program did not wait for an answer")) : .timedOut
        // GPG_ERR_NO_PIN_ENTRY, GPG_ERR_MISSING_ENVVAR, ENOTTY, ENXIO, ENODEV, EIO, EBADF, and the system's own ENOTTY
        case 85, 303, 32_768 + 102, 32_768 + 104, 32_768 + 80, 32_768 + 49, 32_768 + 11, 32_768 + 25:
            .promptUnavailable("the pinentry program finds no terminal and no display (error \(code))")
        default: .failed("the pinentry program answers error \(code)")
        }
    }
}
