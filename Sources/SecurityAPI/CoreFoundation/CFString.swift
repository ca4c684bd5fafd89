// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase, NeverUseImplicitlyUnwrappedOptionals
// The names are Apple's, and so are the implicitly unwrapped types.

public import Foundation

/// The number of a text encoding: a raw value of `CFStringBuiltInEncodings`.
public typealias CFStringEncoding = UInt32

/// Text encodings.
///
/// These are the encodings of Apple's type that functions of this module accept.
public enum CFStringBuiltInEncodings: CFStringEncoding, Sendable {
    /// UTF-8.
    case UTF8 = 0x0800_0100
    /// ASCII.
    case ASCII = 0x0600
    /// ISO 8859-1.
    case isoLatin1 = 0x0201
    /// UTF-16. Without a byte order mark the bytes are in the order of the machine.
    case UTF16 = 0x0100

    /// Returns the text that the bytes encode, or nil if they are not in this encoding.
    fileprivate func text(of bytes: Data) -> String? {
        switch self {
        case .UTF8: String(data: bytes, encoding: .utf8)
        // Foundation's encoding accepts bytes that are not ASCII.
        case .ASCII: bytes.allSatisfy { $0 < 0x80 } ? String(data: bytes, encoding: .utf8) : nil
        case .isoLatin1: String(data: bytes, encoding: .isoLatin1)
        case .UTF16: String(data: bytes, encoding: .utf16)
        }
    }
}

/// Creates a string from bytes that end with a zero byte.
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - text: The bytes.
///   - encoding: A raw value of `CFStringBuiltInEncodings`, except UTF-16, whose characters may contain zero bytes.
/// - Returns: The string; nil if `text` is nil, if the bytes are not in that encoding, or if the encoding is not known.
public func CFStringCreateWithCString(_ allocator: CFAllocator?, _ text: UnsafePointer<CChar>?, _ encoding: CFStringEncoding) -> CFString! {
    guard let text = unsafe text, let known = CFStringBuiltInEncodings(rawValue: encoding), known != .UTF16 else { return nil }
    // The caller promises a zero byte at the end: the contract of Apple's function. `strlen` counts the bytes before it.
    return known.text(of: unsafe Data(bytes: text, count: strlen(text)))
}

/// Creates a string from data.
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - data: The bytes.
///   - encoding: A raw value of `CFStringBuiltInEncodings`.
/// - Returns: The string; nil if `data` is nil, if the bytes are not in that encoding, or if the encoding is not known.
public func CFStringCreateFromExternalRepresentation(
    _ allocator: CFAllocator?, _ data: CFData?, _ encoding: CFStringEncoding
) -> CFString! {
    guard let data, let known = CFStringBuiltInEncodings(rawValue: encoding) else { return nil }
    return known.text(of: Data(referencing: data))
}
