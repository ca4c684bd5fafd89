// SPDX-License-Identifier: Apache-2.0
import Foundation
import Valet

/// A credential that a test renews.
struct RenewedToken: Codable, Sendable {
    let text: String
    let isExpired: Bool
}

extension ValetKey<RenewedToken> {
    static let token = ValetKey("token")
}

extension ChildCommand {
    /// Stores an expired credential.
    static func storeExpiredToken(_ arguments: [String]) throws {
        try testValet().set(RenewedToken(text: "expired", isExpired: true), for: .token)
        say("stored")
    }

    /// TASKS TIMEOUT LOG|hang: after a line of standard input, refreshes the credential in several tasks at once, and prints the result of each.
    ///
    /// Each renewal appends a line to the file LOG; with `hang` it never ends.
    static func refreshToken(_ arguments: [String]) throws {
        guard arguments.count == 3, let taskCount = Int(arguments[0]), let timeoutSeconds = Double(arguments[1]) else {
            throw BadArguments()
        }
        let vault = try testValet()
        let log = arguments[2]
        say("ready")
        _ = readLine()
        let end = DispatchSemaphore(value: 0)
        Task {
            await withTaskGroup(of: String.self) { group in
                for number in 0..<taskCount {
                    group.addTask {
                        do {
                            let token = try await vault.asynchronously.refresh(.token, if: \.isExpired, timeoutSeconds: timeoutSeconds) {
                                _ in
                                try await renew(by: "\(ProcessInfo.processInfo.processIdentifier).\(number)", log)
                            }
                            return "token \(token.text)"
                        } catch { return "failed \(error)" }
                    }
                }
                for await line in group { say(line) }
            }
            end.signal()
        }
        end.wait()
    }

    /// Prints a line for each change, until it is killed.
    static func listen(_ arguments: [String]) throws {
        let changes = try testValet().changes
        say("listening")
        let end = DispatchSemaphore(value: 0)
        Task {
            for await _ in changes { say("changed \(Date().timeIntervalSince1970)") }
            end.signal()
        }
        end.wait()
    }

    private static func renew(by name: String, _ log: String) async throws -> RenewedToken {
        if log == "hang" {
            say("renewing")
            try await Task.sleep(for: .seconds(3_600))
        }
        let file = try FileHandle(forWritingTo: URL(filePath: log))
        try file.seekToEnd()
        try file.write(contentsOf: Data("\(name)\n".utf8))
        try file.close()
        return RenewedToken(text: name, isExpired: false)
    }
}
