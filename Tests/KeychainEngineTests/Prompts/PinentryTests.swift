// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// A pinentry program with scripted behavior, in its own folder.
struct MisbehavingPinentry {
    /// The outcome of a prompt, in a comparable form.
    enum Outcome: Equatable {
        case text(String)
        case empty
        case canceled, timedOut, promptUnavailable, failed
    }

    var path: String { program.path }
    private let program: ScriptedPinentryProgram

    init(_ steps: String...) throws { program = try ScriptedPinentryProgram(steps) }

    /// Prompts through the program, as on a desktop.
    func ask(
        _ question: PresenceQuestion = .sample(), environment: [String: String] = ["DISPLAY": ":nowhere"]
    ) -> Outcome {
        Self.outcome(of: question, PinentryPrompter(path: path, environment: PromptEnvironment(environment)))
    }

    static func outcome(of question: PresenceQuestion, _ prompter: any PresencePrompter) -> Outcome {
        do throws(PresenceRefusal) {
            switch try prompter.ask(question) {
            case .empty: return .empty
            // The text is the test's, and no secret.
            case .secret(let secret): return .text(unsafe secret.withBytes { unsafe String(decoding: $0, as: UTF8.self) })
            }
        } catch {
            switch error {
            case .canceled: return .canceled
            case .timedOut: return .timedOut
            case .promptUnavailable: return .promptUnavailable
            case .failed: return .failed
            }
        }
    }

    /// The lines of the program's log: first its environment, then the requests.
    var requests: [String] { program.log.split(separator: "\n").map(String.init) }

    /// Whether this process still has a child, running or zombie, of this program.
    var isStillRunning: Bool {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.contains { process in
            // PID (NAME) STATE PARENT
            guard Int(process) != nil, let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
                let end = status.lastIndex(of: ")")
            else { return false }
            let parent = status[end...].split(separator: " ").dropFirst(2).first
            return status[..<end].hasSuffix("(\(program.name)") && parent == "\(getpid())"
        }
    }
}

extension PresenceQuestion {
    static func sample(
        _ secret: Secret = .passcode, reason: String? = "Open the safe", cancelTitle: String? = nil, triesLeft: Int? = nil,
        timeoutSeconds: UInt32 = 60
    ) -> PresenceQuestion {
        PresenceQuestion(
            secret: secret, requester: "/usr/bin/mytool", purpose: "read an item that needs your passcode", reason: reason,
            cancelTitle: cancelTitle, triesLeft: triesLeft, timeoutSeconds: timeoutSeconds)
    }
}

@Suite("Asking through a pinentry program", .waitsForClock)
struct PinentryTests {
    @Test("The program receives the requester, the purpose and the timeout, and its answer is decoded")
    func question() throws {
        let pinentry = try MisbehavingPinentry("say OK hello", "until GETPIN", "say # a comment", "say D 12%2534%0A%c3%A9", "say OK")
        let question = PresenceQuestion.sample(cancelTitle: "Not_now", triesLeft: 2)
        #expect(pinentry.ask(question, environment: ["DISPLAY": ":nowhere", "TERM": "dumb", "LANG": "C.UTF-8"]) == .text("12%34\né"))
        let requests = pinentry.requests
        #expect(requests.contains("SETTITLE Keychain"))
        #expect(
            requests.contains(
                "SETDESC /usr/bin/mytool wants to read an item that needs your passcode.%0AIt says: \"Open the safe\""))
        #expect(requests.contains("SETPROMPT Passcode:"))
        #expect(requests.contains("SETERROR Wrong passcode; 2 tries left."))
        #expect(requests.contains("SETCANCEL Not__now"))
        #expect(requests.contains { $0.hasPrefix("SETTIMEOUT 5") })
        #expect(requests.contains("OPTION display=:nowhere"))
        #expect(requests.contains("OPTION ttytype=dumb"))
        #expect(requests.contains("OPTION lc-ctype=C.UTF-8"))
        #expect(!requests.contains { $0.hasPrefix("SETREPEAT") })
        #expect(!pinentry.isStillRunning)
    }

    @Test("The program inherits only the required variables and descriptors")
    func inheritance() throws {
        let pinentry = try MisbehavingPinentry("say OK", "until GETPIN", "say OK")
        #expect(pinentry.ask(environment: ["DISPLAY": ":nowhere", "HOME": "/h", "PATH": "/evil", "LD_PRELOAD": "/evil.so"]) == .empty)
        let names = try #require(pinentry.requests.first).split(separator: " ").dropFirst().filter { $0 != "GPG_TTY" }
        #expect(names == ["DISPLAY", "HOME"])
        // Standard input, output and error, its log, and the directory in which it counts.
        #expect(pinentry.requests[1] == "descriptors 5")
    }

    @Test(
        "Options that a program does not support are omitted",
        arguments: ["OPTION", "SETTIMEOUT", "SETTITLE", "SETERROR", "SETCANCEL"])
    func refusedRequest(_ request: String) throws {
        let pinentry = try MisbehavingPinentry("refuse \(request)", "say OK", "until GETPIN", "say D x", "say OK")
        #expect(pinentry.ask(.sample(cancelTitle: "No", triesLeft: 1)) == .text("x"))
    }

    @Test("A prompt that cannot show the requester is not shown", arguments: ["SETDESC", "SETPROMPT"])
    func refusedDescription(_ request: String) throws {
        let pinentry = try MisbehavingPinentry("refuse \(request)", "say OK", "until GETPIN", "say D x", "say OK")
        #expect(pinentry.ask() == .failed)
        #expect(!pinentry.requests.contains("GETPIN"))
    }

    @Test(
        "Each error of the program has its own refusal",
        arguments: [
            (83_886_179, .canceled), (99, .canceled), (83_886_278, .canceled), (83_886_194, .canceled), (83_918_950, .promptUnavailable),
            (83_918_952, .promptUnavailable), (83_886_165, .promptUnavailable), (83_886_383, .promptUnavailable), (83_886_081, .failed),
            (0, .failed),
            (99_999_999_999, .failed),
        ] as [(Int, MisbehavingPinentry.Outcome)])
    func errors(_ number: Int, expected: MisbehavingPinentry.Outcome) throws {
        let pinentry = try MisbehavingPinentry("say OK", "until GETPIN", "say ERR \(number) why <Pinentry>")
        #expect(pinentry.ask() == expected)
        #expect(!pinentry.isStillRunning)
    }

    @Test("A timeout error at the deadline is a timeout; an earlier one is a cancellation, which pinentry-tty reports so")
    func timeout() throws {
        #expect(try MisbehavingPinentry("say OK", "until GETPIN", "say ERR 83886142 Timeout").ask() == .canceled)
        let late = try MisbehavingPinentry("say OK", "until GETPIN", "sleep 4000", "say ERR 83886142 Timeout", "sleep 60000")
        #expect(late.ask(.sample(timeoutSeconds: 6)) == .timedOut)
        #expect(!late.isStillRunning)
    }

    @Test("Without an answer in time the prompt times out, and the program is killed if necessary", arguments: [false, true])
    func silence(_ ignoresSignals: Bool) throws {
        let pinentry = try MisbehavingPinentry(ignoresSignals ? "ignore-signals" : "sleep 0", "say OK", "until GETPIN", "sleep 600000")
        #expect(pinentry.ask(.sample(timeoutSeconds: 6)) == .timedOut)
        #expect(!pinentry.isStillRunning)
    }

    @Test("The program is a child of this process during the prompt, and gone afterwards")
    func presence() throws {
        let pinentry = try MisbehavingPinentry("say OK", "until GETPIN", "sleep 600000")
        Thread.detachNewThread { _ = pinentry.ask(.sample(timeoutSeconds: 4)) }
        for isThere in [true, false] {
            #expect(waitUntil { pinentry.isStillRunning == isThere })
        }
    }

    @Test(
        "A program that sends garbage, exits or stops responding fails by the deadline and is removed",
        arguments: [
            ["sleep 600000"], ["die"], ["say ERR 1 no"], ["say Hello"], ["put OK"], ["flood x"], ["flood-lines # x"], ["flood-lines x"],
            ["say OK", "die"], ["say OK", "close-output", "sleep 600000"], ["say OK", "until SETDESC", "sleep 600000"],
            ["say OK", "until GETPIN", "die"], ["say OK", "until GETPIN", "put D hal", "sleep 600000"],
            ["say OK", "until GETPIN", "say D hal", "die"], ["say OK", "until GETPIN", "flood x"],
            ["say OK", "until GETPIN", "flood-lines D x"], ["say OK", "until GETPIN", "flood-lines S x"],
            ["say OK", "until GETPIN", "flood-lines INQUIRE QUALITY x"],
            ["say OK", "until GETPIN", "say D \(String(repeating: "x", count: 1_000))"],
            ["say OK", "until GETPIN", "say D %4", "say OK"], ["say OK", "until GETPIN", "say D %zz", "say OK"],
            ["say OK", "until GETPIN", "say D abc%", "say OK"], ["say OK", "until GETPIN", "say ERR", "say OK"],
            ["say OK", "until GETPIN", "say OKAY"], ["say OK", "until GETPIN", "say What"], ["say OK", "until GETPIN", "say "],
        ])
    func oddities(_ steps: [String]) throws {
        let pinentry = try MisbehavingPinentry(steps.joined(separator: "\n"))
        #expect(pinentry.ask(.sample(timeoutSeconds: 2)) == .failed)
        #expect(!pinentry.isStillRunning)
    }

    @Test("Several lines of data are one answer, up to the maximum size of a passcode")
    func severalLines() throws {
        let line = String(repeating: "x", count: 512)
        #expect(try MisbehavingPinentry("say OK", "until GETPIN", "say D ab", "say S X", "say D cd", "say OK").ask() == .text("abcd"))
        #expect(try MisbehavingPinentry("say OK", "until GETPIN", "say D \(line)", "say D \(line)", "say OK").ask() == .text(line + line))
        #expect(try MisbehavingPinentry("say OK", "until GETPIN", "say D \(line)", "say D \(line)", "say D x", "say OK").ask() == .failed)
    }

    @Test("Data outside an answer is not used as a passcode")
    func strayData() throws {
        #expect(try MisbehavingPinentry("say D early", "say OK", "until GETPIN", "say OK").ask() == .empty)
        let early = try MisbehavingPinentry("say OK", "until SETDESC", "say D early", "say OK", "until GETPIN", "say D x", "say OK")
        #expect(early.ask() == .text("x"))
    }

    @Test("An inquiry is answered, and the response after it is read")
    func inquiry() throws {
        let quality = try MisbehavingPinentry("say OK", "until GETPIN", "say INQUIRE QUALITY x", "until END", "say D x", "say OK")
        #expect(quality.ask() == .text("x"))
        let unknown = try MisbehavingPinentry("say OK", "until GETPIN", "say INQUIRE SECRETS", "until CAN", "say ERR 83886357 canceled")
        #expect(unknown.ask() == .canceled)
    }

    @Test("A new password is entered twice: in one prompt if the program supports it, otherwise in two")
    func newPassword() throws {
        let able = try MisbehavingPinentry("say OK", "until GETPIN", "say S PIN_REPEATED", "say D new", "say OK")
        #expect(able.ask(.sample(.newApplicationPassword)) == .text("new"))
        #expect(able.requests.contains("SETREPEAT Again:"))
        let unable = try MisbehavingPinentry(
            "refuse SETREPEAT", "say OK", "until GETPIN", "say D new", "say OK", "until GETPIN", "say D new", "say OK")
        #expect(unable.ask(.sample(.newApplicationPassword)) == .text("new"))
        #expect(unable.requests.contains("SETPROMPT Again:"))
        let third = try MisbehavingPinentry(
            "say OK", "until GETPIN", "say D one", "say OK", "until GETPIN", "say D other", "say OK", "until GETPIN",
            "say ERR 83886194 not confirmed", "until GETPIN", "say S PIN_REPEATED", "say D new", "say OK")
        #expect(third.ask(.sample(.newApplicationPassword)) == .text("new"))
        #expect(third.requests.contains("SETERROR The two entries differ."))
        let never = try MisbehavingPinentry(
            "say OK", "until GETPIN", "say ERR 114", "until GETPIN", "say ERR 114", "until GETPIN", "say ERR 114", "until GETPIN")
        #expect(never.ask(.sample(.newApplicationPassword)) == .failed)
    }

    @Test("No request exceeds the maximum line length, even with a long reason")
    func longRequests() throws {
        let pinentry = try MisbehavingPinentry("say OK", "until GETPIN", "say D x", "say OK")
        let long = String(repeating: "100 % é\u{1B}]0;x\u{7}", count: 5_000)
        let question = PresenceQuestion(
            secret: .passcode, requester: "/" + long, purpose: long, reason: long, cancelTitle: long, timeoutSeconds: 60)
        let environment = ["DISPLAY": ":nowhere", "TERM": String(repeating: "%", count: 10_000)]
        #expect(pinentry.ask(question, environment: environment) == .text("x"))
        #expect(pinentry.requests.dropFirst().allSatisfy { $0.utf8.count < 1_000 })
    }

    @Test(
        "A path that is not absolute or not executable is an error, and no prompt can be shown",
        arguments: ["pinentry", "/nowhere/pinentry", "/etc", "/etc/passwd"])
    func noProgram(_ path: String) {
        let prompter = PinentryPrompter(path: path, environment: PromptEnvironment())
        #expect(!prompter.canAsk)
        #expect(MisbehavingPinentry.outcome(of: .sample(), prompter) == .failed)
    }
}

@Suite("Requests to a pinentry program")
struct AssuanRequestTests {
    private static func line(_ text: String? = nil) -> String {
        String(decoding: AssuanRequest.line("SETDESC", text), as: UTF8.self)
    }

    @Test("Control characters and percent signs are escaped, and all other bytes are unchanged")
    func escapes() {
        #expect(Self.line() == "SETDESC\n")
        #expect(Self.line("") == "SETDESC \n")
        #expect(Self.line("100 %\r\n\u{0}\u{7F} é+\\") == "SETDESC 100 %25%0D%0A%00%7F é+\\\n")
    }

    @Test("A line has at most 1000 bytes; longer text is truncated at a character boundary, with an ellipsis")
    func length() {
        let most = AssuanRequest.lineByteLimit - "SETDESC \n".utf8.count
        #expect(Self.line(String(repeating: "x", count: most)).utf8.count == 1_000)
        #expect(!Self.line(String(repeating: "x", count: most)).contains("…"))
        for character in ["x", "é", "€", "🔐", "%", "\n", "👨‍👩‍👧"] {
            let line = Self.line(String(repeating: character, count: 2_000))
            #expect(line.utf8.count <= 1_000)
            #expect(line.hasSuffix("…\n"))
            let escaped = Self.line(character).dropFirst("SETDESC ".count).dropLast()
            let text = line.dropFirst("SETDESC ".count).dropLast(2)
            #expect(text == String(repeating: String(escaped), count: text.utf8.count / escaped.utf8.count))
            #expect(line.utf8.count > 1_000 - 2 * character.utf8.count * 3)
        }
    }
}
