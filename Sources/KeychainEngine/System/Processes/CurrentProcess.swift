// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import KeychainCore

/// A child that was forked, and runs on without exec, has copies of locks that nobody will give back, and no keys.
enum ForkGuard {
    /// Throws `.notAvailable` in a child of a process that uses a keychain.
    static func refuse() throws(KeychainFailure) {
        guard keychain_fork_guard_install(), !keychain_process_is_forked() else {
            throw KeychainFailure(.notAvailable, "this process was forked from one that uses the keychain; start it with exec")
        }
    }
}

/// The user namespace of this process: each has its own keyrings.
package enum UserNamespace {
    /// Whether it is the machine's first one.
    ///
    /// Where that cannot be seen the answer is no, for which fewer things are taken for granted.
    package static let isInitial = isInitial(map: mapOfThisProcess())

    /// In the first one, and there alone, every user is who he is: "0 0 4294967295".
    package static func isInitial(map: String?) -> Bool {
        map?.split(whereSeparator: \.isWhitespace) == ["0", "0", "4294967295"]
    }

    private static func mapOfThisProcess() -> String? {
        let descriptor = unsafe open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        // A map of one line comes whole in one read; at most `count` bytes are written.
        let count = unsafe read(descriptor, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : nil
    }
}
