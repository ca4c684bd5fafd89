// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

/// A key or another short secret with a single owner, wiped at the end of its lifetime.
///
/// It is noncopyable and cannot become `Any`, so printing, interpolating, or archiving it does not compile.
@safe package struct SecretBytes: ~Copyable, @unchecked Sendable {
    // Unchecked: the region is written only by `init`, before it is visible to other threads, and by `deinit`, after the last use.
    private let base: UnsafeMutableRawPointer
    package let byteCount: Int

    /// Allocates a zeroed region that `fill` writes once.
    package init(
        byteCount: Int, filledBy fill: (UnsafeMutableRawBufferPointer) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        unsafe base = try Self.filledRegion(byteCount: byteCount, fill)
        self.byteCount = byteCount
    }

    private static func filledRegion(
        byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) -> UnsafeMutableRawPointer {
        try ForkDetection.requireNotForked()
        guard byteCount > 0, let base = unsafe SecretArena.allocate(byteCount: byteCount) else {
            throw KeychainFailure(.allocate, "no memory for a key of \(byteCount) bytes")
        }
        do throws(KeychainFailure) {
            // `fill` writes within the region just allocated and does not keep the pointer.
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
                throw KeychainFailure(.notAvailable, "the kernel's random generator failed")
            }
        }
    }

    /// Copies bytes.
    ///
    /// The caller wipes the original if it is secret.
    package init(copying bytes: UnsafeRawBufferPointer) throws(KeychainFailure) {
        try unsafe self.init(byteCount: bytes.count) { unsafe $0.copyMemory(from: bytes) }
    }

    deinit {
        unsafe SecretArena.deallocate(base, byteCount: byteCount)
    }

    /// Calls `body` with the bytes, which it must not keep or copy.
    package borrowing func withBytes<Result: ~Copyable, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe body(UnsafeRawBufferPointer(start: base, count: byteCount))
    }
}

/// A passcode ready for key derivation: UTF-8 text in Unicode normalization form C.
///
/// The caller normalizes typed text, so that the same passcode typed on different systems has the same bytes.
package struct Passcode: ~Copyable, Sendable {
    /// The size limit.
    ///
    /// People do not type longer passcodes, and verifying each would take time.
    package static let largestByteCount = 1_024

    package let bytes: SecretBytes

    /// Throws `.parameter` if it is longer than `largestByteCount`.
    package init(normalized bytes: consuming SecretBytes) throws(KeychainFailure) {
        guard bytes.byteCount <= Self.largestByteCount else {
            throw KeychainFailure(.parameter, "a passcode or password has at most \(Self.largestByteCount) bytes")
        }
        self.bytes = bytes
    }
}
