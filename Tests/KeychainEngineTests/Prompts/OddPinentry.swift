// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport

/// A pinentry program that says and does what a test wants, in a folder of its own.
struct OddPinentry {
    /// How a question ended, in words that can be compared.
    enum Outcome: Equatable {
        case text(String)
        case empty
        case canceled, timedOut, nobodyToAsk, failed
    }

    let path: String
    private let folder: TemporaryDirectory
    private let name: String

    /// See `ScriptedPinentry`, which is what it runs.
    init(_ steps: String...) throws {
        folder = try TemporaryDirectory()
        // Nobody else's, and no longer than what the kernel keeps of a name: 15 bytes.
        name = "pinentry-\(UInt32.random(in: 0...999_999))"
        path = folder.path + "/" + name
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: try BuiltProgram.path(of: "KeychainTestChild"))
        try steps.joined(separator: "\n").write(toFile: path + ".script", atomically: true, encoding: .utf8)
    }

    /// Asks through it, as from a desktop.
    func ask(
        _ question: PresenceQuestion = .sample(), environment: [String: String] = ["DISPLAY": ":nowhere"]
    ) -> Outcome {
        Self.outcome(of: question, PinentryVerifier(path: path, environment: PromptEnvironment(environment)))
    }

    static func outcome(of question: PresenceQuestion, _ verifier: any PresenceVerifier) -> Outcome {
        do throws(PresenceRefusal) {
            switch try verifier.ask(question) {
            case .empty: return .empty
            // The text is the test's, and no secret.
            case .secret(let secret): return .text(unsafe secret.withBytes { unsafe String(decoding: $0, as: UTF8.self) })
            }
        } catch {
            switch error {
            case .canceled: return .canceled
            case .timedOut: return .timedOut
            case .nobodyToAsk: return .nobodyToAsk
            case .failed: return .failed
            }
        }
    }

    /// What it was told, line by line; first the names of its variables and the like.
    var requests: [String] {
        let log = (try? String(contentsOfFile: path + ".log", encoding: .utf8)) ?? ""
        return log.split(separator: "\n").map(String.init)
    }

    /// Whether this process has a child left that is, or was, this program.
    var isLeftBehind: Bool {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.contains { process in
            // PID (NAME) STATE PARENT
            guard Int(process) != nil, let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
                let end = status.lastIndex(of: ")")
            else { return false }
            let parent = status[end...].split(separator: " ").dropFirst(2).first
            return status[..<end].hasSuffix("(\(name)") && parent == "\(getpid())"
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
