// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
package import KeychainCore

/// The kernel's keyring of this user: keyrings(7).
package enum KernelKeyring {
    /// A key's serial number; the kernel may reuse it long after the key is gone.
    package typealias Serial = Int32

    /// Why this process cannot use a keyring; nil if it can.
    ///
    /// Containers usually forbid it. A privileged process must not use it: the keyring belongs to the real user, who would get the keys.
    package static var refusal: Errno? { ProcessEnvironment.isPrivileged ? .notPermitted : kernelRefusal }

    /// Probed once: a process gains no system calls later.
    private static let kernelRefusal: Errno? = {
        let answer = keychain_keyring_probe()
        // A full keyring is usable later.
        return answer >= 0 || [.quotaExceeded, .noMemory].contains(Errno(rawValue: -answer)) ? nil : Errno(rawValue: -answer)
    }()

    /// Finds a key by its description; throws if there is none or it cannot be used.
    package static func search(_ description: String) throws(Errno) -> Serial {
        // The string is copied for the call.
        try checked(unsafe keychain_keyring_search(description))
    }

    /// The readable keys in the user's keyring whose descriptions satisfy a condition.
    package static func serials(where isIncluded: (String) -> Bool) throws(Errno) -> [Serial] {
        var all = [Serial](repeating: 0, count: 256)
        for attempt in 1...growthLimit {
            // The kernel writes at most `capacity` numbers.
            let capacity = all.count
            let answer = unsafe all.withUnsafeMutableBufferPointer { unsafe keychain_keyring_list($0.baseAddress, capacity) }
            let count = Int(try checked(answer))
            guard count > capacity else {
                all.removeLast(capacity - count)
                break
            }
            guard attempt < growthLimit else { throw .wouldBlock }
            all = [Serial](repeating: 0, count: count + 64)
        }
        return all.filter { description(of: $0).map(isIncluded) ?? false }
    }

    /// Nil if the key was removed or has expired.
    private static func description(of serial: Serial) -> String? {
        // This library's descriptions are shorter, so a longer one belongs to another program.
        var text = [UInt8](repeating: 0, count: 256)
        let count = unsafe text.withUnsafeMutableBytes { unsafe keychain_keyring_describe(serial, $0.baseAddress, $0.count) }
        guard count > 0, count <= text.count else { return nil }
        // "type;user;group;permission;description", and the zero that ends it.
        let parts = text[..<Int(count - 1)].split(separator: UInt8(ascii: ";"), maxSplits: 4, omittingEmptySubsequences: false)
        return parts.count == 5 ? String(decoding: parts[4], as: UTF8.self) : nil
    }

    /// Calls `body` with a key's content, in key memory.
    package static func withContent<Result: ~Copyable>(
        of serial: Serial, _ body: (UnsafeRawBufferPointer) throws(KeychainFailure) -> Result
    ) throws(Errno) -> Result {
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
                throw .noMemory
            }
            capacity = Int(try checked(answer))
        }
        throw .wouldBlock
    }

    /// How often a buffer is enlarged if the keyring, or a key, grows while it is read.
    private static let growthLimit = 8

    /// Stores `content` under a description, readable by every process of the user.
    ///
    /// Replaces earlier content. Without `timeoutSeconds` the key does not expire.
    package static func hold(
        _ content: borrowing SecretBytes, as description: String, timeoutSeconds: UInt32?
    ) throws(Errno) -> Serial {
        let seconds = timeoutSeconds.map(kernelTimeout) ?? 0
        var attempt = 0
        while true {
            // The kernel copies both within the call.
            let answer = unsafe content.withBytes { unsafe keychain_keyring_add(description, $0.baseAddress, $0.count, seconds) }
            guard Errno(rawValue: -answer) == .quotaExceeded, attempt < quotaRetryLimit else { return try checked(answer) }
            MonotonicClock.sleep(nanoseconds: 1_000_000 << UInt64(min(attempt, 3)))
            attempt += 1
        }
    }

    /// The limit of retries while the user's quota is exhausted, with pauses of up to 8 ms: two seconds in all.
    ///
    /// The quota is 20,000 bytes, and the kernel returns the share of a removed key only some milliseconds later.
    private static let quotaRetryLimit = 250

    /// Restarts a key's timeout.
    package static func setTimeout(_ serial: Serial, seconds: UInt32) throws(Errno) {
        _ = try checked(keychain_keyring_set_timeout(serial, kernelTimeout(seconds)))
    }

    /// Removes a key from every keyring and frees its content immediately.
    package static func invalidate(_ serial: Serial) throws(Errno) {
        _ = try checked(keychain_keyring_invalidate(serial))
    }

    /// Removes the keys that `list` returns, until it returns none: other processes may add keys at the same time.
    ///
    /// Returns false if there are still keys after eight rounds.
    package static func removeAll(
        _ list: () throws(Errno) -> [Serial], invalidating invalidate: (Serial) throws(Errno) -> Void
    ) throws(Errno) -> Bool {
        for _ in 0..<removalLimit {
            var hasRemoved = false
            for serial in try list() {
                do throws(Errno) {
                    try invalidate(serial)
                    hasRemoved = true
                } catch {
                    if !error.isMissingKey { throw error }
                }
            }
            guard hasRemoved else { return true }
        }
        return try list().isEmpty
    }

    /// How often keys are removed again because other processes add keys.
    private static let removalLimit = 8

    /// The kernel counts whole seconds of its clock, the current one included, so a timeout of one second could end immediately.
    private static func kernelTimeout(_ seconds: UInt32) -> UInt32 {
        seconds == .max ? seconds : seconds + 1
    }

    private static func checked(_ answer: Int32) throws(Errno) -> Int32 {
        guard answer >= 0 else { throw Errno(rawValue: -answer) }
        return answer
    }
}
