// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The arguments as the system gave them. Swift repairs what is not UTF-8, and so two different keys would become one.
enum ArgumentText {
    /// Throws if an argument of ours is not UTF-8. What follows `--` after `run` belongs to the command to run, and may be any bytes.
    static func requireUTF8() throws(CommandFailure) {
        let own = isRun ? Array(raw.prefix { unsafe String(cString: $0) != "--" }) : raw
        for argument in own where !isUTF8(argument) {
            throw CommandFailure(.usage, "an argument is not valid UTF-8", advice: "Keys and names are text: give them as UTF-8.")
        }
    }

    /// The arguments after the first `--`, byte for byte, ready for `exec`: ends with nil.
    static var afterTerminator: [UnsafeMutablePointer<CChar>?] {
        unsafe raw.drop { unsafe String(cString: $0) != "--" }.dropFirst().map { unsafe $0 } + [nil]
    }

    private static var isRun: Bool {
        raw.dropFirst().first.map { unsafe String(cString: $0) == "run" } ?? false
    }

    // The system keeps the arguments in place for as long as the process lives.
    private static var raw: [UnsafeMutablePointer<CChar>] {
        unsafe (0..<Int(CommandLine.argc)).compactMap { unsafe CommandLine.unsafeArgv[$0] }
    }

    private static func isUTF8(_ argument: UnsafeMutablePointer<CChar>) -> Bool {
        unsafe String(validatingCString: argument) != nil
    }
}
