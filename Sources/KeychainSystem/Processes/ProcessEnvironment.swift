// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import Glibc
internal import KeychainCore

/// The environment variables of this process.
///
/// The C library does not synchronize changes with reads on other threads. Change variables only while there is one thread, or before
/// this process is replaced.
package enum ProcessEnvironment {
    /// All variables; invalid UTF-8 is repaired.
    package static var variables: [String: String] { ProcessInfo.processInfo.environment }

    /// Whether a variable is set, also to the empty string.
    package static func contains(_ name: String) -> Bool {
        // The result is only compared.
        unsafe getenv(name) != nil
    }

    /// Sets a variable; returns false if the system refuses.
    ///
    /// `value` must not contain NUL. It is copied into the environment; this function's own copy is wiped.
    package static func set(_ name: String, to value: some Collection<UInt8>) -> Bool {
        var characters = Array(value) + [0]
        defer { characters.wipe() }
        // The C library copies both; the buffer is used during the call only.
        return unsafe characters.withUnsafeBytes { buffer in
            guard let value = unsafe buffer.assumingMemoryBound(to: CChar.self).baseAddress else { return false }
            return unsafe setenv(name, value, 1) == 0
        }
    }

    /// Removes a variable; does nothing if it is not set.
    package static func remove(_ name: String) {
        // The name is used during the call only.
        _ = unsafe unsetenv(name)
    }
}
