// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase, NeverUseImplicitlyUnwrappedOptionals
// The names are Apple's, and so are the implicitly unwrapped types.

public import Foundation

/// Creates data with a copy of bytes.
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - bytes: At least `length` bytes. May be nil if `length` is 0.
///   - length: The number of bytes.
/// - Returns: The data; nil if `length` is negative, or if it is not 0 and `bytes` is nil.
public func CFDataCreate(_ allocator: CFAllocator?, _ bytes: UnsafePointer<UInt8>?, _ length: CFIndex) -> CFData! {
    guard length >= 0 else { return nil }
    guard let bytes = unsafe bytes else { return length == 0 ? NSData() : nil }
    // The caller promises `length` bytes: the contract of Apple's function.
    return unsafe NSData(bytes: bytes, length: length)
}

/// The number of bytes of data.
///
/// - Parameter data: The data. Nil has no bytes.
/// - Returns: The number.
public func CFDataGetLength(_ data: CFData?) -> CFIndex { data?.length ?? 0 }

/// Returns a pointer to the bytes of data.
///
/// - Parameter data: The data.
/// - Returns: The address of `CFDataGetLength(_:)` bytes, valid while the data exists; nil for nil.
public func CFDataGetBytePtr(_ data: CFData?) -> UnsafePointer<UInt8>! {
    // The data owns its bytes. They are initialized, and bytes may be read as UInt8.
    unsafe data?.bytes.assumingMemoryBound(to: UInt8.self)
}
