// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

/// A source of random bytes.
///
/// It has no values but `kSecRandomDefault`.
public final class SecRandom: Sendable {
    private init() {}
}

/// A source of random bytes for `SecRandomCopyBytes(_:_:_:)`.
public typealias SecRandomRef = SecRandom

/// The system's own generator of cryptographically secure random bytes.
///
/// As on Apple platforms it is nil.
public let kSecRandomDefault: SecRandomRef? = nil

/// Fills memory with random bytes that are fit for keys.
///
/// - Parameters:
///   - generator: `kSecRandomDefault`.
///   - byteCount: How many bytes to write, at least 0.
///   - bytes: Where to write them: memory of at least `byteCount` bytes.
/// - Returns: `errSecSuccess`, or `errSecParam` if `byteCount` is negative; then nothing is written.
@discardableResult
public func SecRandomCopyBytes(_ generator: SecRandomRef?, _ byteCount: Int, _ bytes: UnsafeMutableRawPointer) -> Int32 {
    guard byteCount >= 0 else { return errSecParam }
    // The caller promises that `bytes` has room for `byteCount` bytes: the contract of the function, which only the caller can keep.
    let destination = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: byteCount)
    var system = SystemRandomNumberGenerator()
    let wordByteCount = MemoryLayout<UInt64>.size
    var offset = 0
    while byteCount - offset >= wordByteCount {
        unsafe destination.storeBytes(of: system.next(), toByteOffset: offset, as: UInt64.self)
        offset += wordByteCount
    }
    while offset < byteCount {
        unsafe destination.storeBytes(of: system.next(), toByteOffset: offset, as: UInt8.self)
        offset += 1
    }
    return errSecSuccess
}
