// SPDX-License-Identifier: Apache-2.0
import CKeychainShims
import Foundation

/// The arguments as the system gave them.
///
/// Swift repairs what is not UTF-8, and so two different keys would become one.
enum ArgumentText {
    /// Throws if an argument of ours is not UTF-8.
    ///
    /// What follows `--` after `run` belongs to the command to run, and may be any bytes.
    static func requireUTF8() throws(CommandFailure) {
        let isRun = count > 1 && text(1) == "run"
        let own = isRun ? terminator ?? count : count
        for index in 0..<own where text(index) == nil {
            throw CommandFailure(.usage, "an argument is not valid UTF-8", advice: "Keys and names are text: give them as UTF-8.")
        }
    }

    /// Replaces this process by the command after the first `--`, byte for byte as it was given.
    ///
    /// Returns the error number, only if that failed.
    static func executeWhatFollowsTerminator() -> Int32 {
        guard let terminator, terminator + 1 < count else { return ENOENT }
        // The system ends the arguments with a null pointer.
        return unsafe keychain_execute(CommandLine.unsafeArgv + terminator + 1)
    }

    private static var count: Int { Int(CommandLine.argc) }

    private static var terminator: Int? { (0..<count).first { text($0) == "--" } }

    /// Nil: not UTF-8.
    private static func text(_ index: Int) -> String? {
        // The system keeps the arguments in place for as long as the process lives.
        unsafe CommandLine.unsafeArgv[index].flatMap { unsafe String(validatingCString: $0) }
    }
}
