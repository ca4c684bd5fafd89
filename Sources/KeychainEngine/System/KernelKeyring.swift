// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import KeychainCore

/// The kernel's keyring of this user, as functions that throw an error number instead of setting one.
enum KernelKeyring {
    /// Names a key for as long as the key exists; then, after a long time, perhaps another one.
    typealias Serial = Int32

    /// An error number that the kernel answered.
    struct SystemError: Error, Hashable {
        let rawValue: Int32

        /// There is no such key, or no longer: removed, revoked, or its time is up.
        var meansAbsent: Bool { [ENOKEY, EKEYREVOKED, EKEYEXPIRED].contains(rawValue) }

        /// The system's own words, such as "Permission denied".
        var message: String {
            // strerror answers a valid C string for every number.
            unsafe String(cString: strerror(rawValue))
        }
    }

    /// Why keys cannot be kept here at all; nil where they can.
    ///
    /// Containers refuse it. Asked once: what a process may call does not become more.
    static let refusal: SystemError? = {
        let answer = keychain_keyring_probe()
        // A keyring that is full today is a keyring all the same.
        return answer >= 0 || [-EDQUOT, -ENOMEM].contains(answer) ? nil : SystemError(rawValue: -answer)
    }()

    /// Throws where nothing of that description is, or it may not be had.
    static func search(_ description: String) throws(SystemError) -> Serial {
        // The string is copied for the call.
        try checked(unsafe keychain_keyring_search(description))
    }

    /// The keys in the user's keyring whose descriptions are meant, and that can still be read.
    static func serials(where isMeant: (String) -> Bool) throws(SystemError) -> [Serial] {
        var all = [Serial](repeating: 0, count: 256)
        for attempt in 1...growthLimit {
            // As many as there is room for.
            let capacity = all.count
            let answer = unsafe all.withUnsafeMutableBufferPointer { unsafe keychain_keyring_list($0.baseAddress, capacity) }
            let count = Int(try checked(answer))
            guard count > capacity else {
                all.removeLast(capacity - count)
                break
            }
            guard attempt < growthLimit else { throw SystemError(rawValue: EAGAIN) }
            all = [Serial](repeating: 0, count: count + 64)
        }
        return all.filter { description(of: $0).map(isMeant) ?? false }
    }

    /// Nil when there is no such key by now, or its time is up.
    private static func description(of serial: Serial) -> String? {
        // Ours are shorter; whatever is longer is not meant.
        var text = [UInt8](repeating: 0, count: 256)
        let count = unsafe text.withUnsafeMutableBytes { unsafe keychain_keyring_describe(serial, $0.baseAddress, $0.count) }
        guard count > 0, count <= text.count else { return nil }
        // "type;user;group;permission;description", and the zero that ends it.
        let parts = text[..<Int(count - 1)].split(separator: UInt8(ascii: ";"), maxSplits: 4, omittingEmptySubsequences: false)
        return parts.count == 5 ? String(decoding: parts[4], as: UTF8.self) : nil
    }

    /// Lends a key's content to `body`, in key memory.
    static func withContent<Result: ~Copyable>(
        of serial: Serial, _ body: (UnsafeRawBufferPointer) throws(KeychainFailure) -> Result
    ) throws(SystemError) -> Result {
        var capacity = 512
        for _ in 1...growthLimit {
            var answer: Int32 = 0
            do throws(KeychainFailure) {
                let buffer = try unsafe SecretBytes(byteCount: capacity) { buffer in
                    // The kernel writes at most `count` bytes there.
                    answer = unsafe keychain_keyring_read(serial, buffer.baseAddress, buffer.count)
                }
                if answer >= 0, answer <= capacity {
                    // The first `answer` bytes of the buffer, for the duration of `body`.
                    return try unsafe buffer.withBytes { (bytes) throws(KeychainFailure) in
                        try unsafe body(UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(answer))))
                    }
                }
            } catch {
                throw SystemError(rawValue: ENOMEM)
            }
            capacity = Int(try checked(answer))
        }
        throw SystemError(rawValue: EAGAIN)
    }

    /// How often a buffer is enlarged if the keyring, or a key, grows while it is read.
    private static let growthLimit = 8

    /// Holds `content` in the place of what bears that description, readable by every process of the user.
    static func hold(
        _ content: borrowing SecretBytes, as description: String, timeoutSeconds: UInt32?
    ) throws(SystemError) -> Serial {
        let seconds = timeoutSeconds.map(armed) ?? 0
        var attempt = 0
        while true {
            // The kernel copies both within the call.
            let answer = unsafe content.withBytes { unsafe keychain_keyring_add(description, $0.baseAddress, $0.count, seconds) }
            guard answer == -EDQUOT, attempt < quotaRetryLimit else { return try checked(answer) }
            var pause = timespec(tv_sec: 0, tv_nsec: 1_000_000 << min(attempt, 3))
            // Woken early by a signal, it returns early: the next attempt says whether there is room.
            _ = unsafe nanosleep(&pause, nil)
            attempt += 1
        }
    }

    /// How often room is waited for, with pauses of up to 8 ms: two seconds in all.
    ///
    /// A user has room for 20,000 bytes, and what was let go of gives its part back only some milliseconds later.
    private static let quotaRetryLimit = 250

    /// Lets a key's time begin anew.
    static func setTimeout(_ serial: Serial, seconds: UInt32) throws(SystemError) {
        _ = try checked(keychain_keyring_set_timeout(serial, armed(seconds)))
    }

    /// Takes a key out of every keyring and frees its content at once.
    static func invalidate(_ serial: Serial) throws(SystemError) {
        _ = try checked(keychain_keyring_invalidate(serial))
    }

    /// The kernel counts whole seconds of its clock, the running one as a full one: without one more, one second would be none.
    private static func armed(_ seconds: UInt32) -> UInt32 {
        seconds == .max ? seconds : seconds + 1
    }

    private static func checked(_ answer: Int32) throws(SystemError) -> Int32 {
        guard answer >= 0 else { throw SystemError(rawValue: -answer) }
        return answer
    }
}
