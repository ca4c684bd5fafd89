// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

/// A key or another short secret: one owner, no copies, wiped at the end of its life.
///
/// Being noncopyable it cannot become `Any`, so printing, interpolating or archiving one does not compile.
@safe package struct SecretBytes: ~Copyable, @unchecked Sendable {
    // Unchecked: the region is written only while `init` runs, before anybody else can see it, and by `deinit`, after the last.
    private let base: UnsafeMutableRawPointer
    package let byteCount: Int

    /// Takes a zeroed region and lets `fill` write it, once.
    package init(
        byteCount: Int, filledBy fill: (UnsafeMutableRawBufferPointer) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        unsafe base = try Self.filledRegion(byteCount: byteCount, fill)
        self.byteCount = byteCount
    }

    private static func filledRegion(
        byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> UnsafeMutableRawPointer {
        guard byteCount > 0, let base = unsafe SecretArena.allocate(byteCount: byteCount) else {
            throw KeychainFailure(.allocate, "no memory for a key of \(byteCount) bytes")
        }
        do throws(KeychainFailure) {
            // `fill` writes within the region that was just taken and does not keep the pointer.
            try unsafe fill(UnsafeMutableRawBufferPointer(start: base, count: byteCount))
        } catch {
            unsafe SecretArena.deallocate(base, byteCount: byteCount)
            throw error
        }
        return unsafe base
    }

    /// A secret from the kernel's random generator.
    package init(randomByteCount byteCount: Int) throws(KeychainFailure) {
        try unsafe self.init(byteCount: byteCount) { buffer throws(KeychainFailure) in
            guard unsafe keychain_random_bytes(buffer.baseAddress, buffer.count) else {
                throw KeychainFailure(.notAvailable, "the kernel gives no random bytes")
            }
        }
    }

    /// A copy of bytes that the caller then wipes or never owned as a secret.
    package init(copying bytes: UnsafeRawBufferPointer) throws(KeychainFailure) {
        try unsafe self.init(byteCount: bytes.count) { unsafe $0.copyMemory(from: bytes) }
    }

    deinit {
        unsafe SecretArena.deallocate(base, byteCount: byteCount)
    }

    /// Lends the bytes for the duration of `body`, which must not keep or copy them.
    package borrowing func withBytes<Result: ~Copyable, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe body(UnsafeRawBufferPointer(start: base, count: byteCount))
    }
}

/// A passcode, ready for derivation: its text in normalisation form C, as UTF-8, or ASCII as it is.
///
/// Whoever makes one from what a person typed has normalised it; the same passcode typed on two systems is the same bytes.
package struct Passcode: ~Copyable, Sendable {
    /// Longer ones are refused: nobody types them, and each costs time before it is known to be wrong.
    package static let largestByteCount = 1_024

    package let bytes: SecretBytes

    /// Throws `.parameter` when it is longer than `largestByteCount`.
    package init(normalized bytes: consuming SecretBytes) throws(KeychainFailure) {
        guard bytes.byteCount <= Self.largestByteCount else {
            throw KeychainFailure(.parameter, "a passcode or password has at most \(Self.largestByteCount) bytes")
        }
        self.bytes = bytes
    }
}
