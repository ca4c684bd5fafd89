// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import FoundationEssentials
internal import Glibc
internal import KeychainCore

/// The environment variables of this process.
///
/// A privileged process ignores its environment, because the caller controls it: the caller could make the program run another program,
/// load a library, or use other files with privileges that the caller lacks. All code reads the environment here.
///
/// The C library does not synchronize changes with reads on other threads. Change variables only while there is one thread, or before
/// this process is replaced.
package enum ProcessEnvironment {
    /// Whether this process has privileges that its caller may lack.
    ///
    /// True if the program was started with another effective user or group, or with file capabilities, and while the effective user or
    /// group differs from the real one. The former stays true after the program has dropped its privileges.
    package static var isPrivileged: Bool { keychain_process_is_privileged() }

    /// The variables that this process obeys; invalid UTF-8 is repaired.
    ///
    /// In a privileged process only `HOME`: the home directory of the effective user in the password database, if there is one.
    package static var variables: [String: String] {
        guard isPrivileged else { return ProcessInfo.processInfo.environment }
        guard let home = homeOfEffectiveUser else { return [:] }
        return ["HOME": home]
    }

    private static var homeOfEffectiveUser: String? {
        // The result is allocated for the caller, which must free it.
        guard let home = unsafe keychain_copy_home_of_effective_user() else { return nil }
        defer { unsafe free(home) }
        return unsafe String(validatingCString: home)
    }

    /// Replaces the variables by which a keychain is found in the home directory; throws `.notFound` if the user has none.
    static func useHomeOfEffectiveUser() throws(Errno) {
        guard let home = homeOfEffectiveUser, set("HOME", to: home.utf8) else { throw .notFound }
        for name in ["XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] { remove(name) }
    }

    /// Whether the caller has set a variable whose name begins with `prefix`, for libraries that read the environment themselves.
    package static func callerHasSetVariable(withPrefix prefix: String) -> Bool {
        ProcessInfo.processInfo.environment.keys.contains { $0.hasPrefix(prefix) }
    }

    /// Whether the caller has set a variable, also to the empty string.
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
