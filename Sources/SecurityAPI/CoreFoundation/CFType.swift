// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase, NeverUseImplicitlyUnwrappedOptionals
// The name is Apple's, and so is the implicitly unwrapped type.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, NeverUseImplicitlyUnwrappedOptionals
// The names are Apple's, and both `kCFBooleanTrue` and `kCFBooleanTrue!` are written.

public import Foundation

// The names of Core Foundation that code around Keychain Services uses. They are aliases of the Swift and Foundation types that Apple
// bridges them to, so `as CFString`, `as CFDictionary` and `as? Data` have the same meaning on all platforms.

/// A status of Keychain Services: 0 is success, the `errSec…` constants name the others.
public typealias OSStatus = Int32
/// A set of bits.
public typealias CFOptionFlags = UInt
/// A count or a position.
public typealias CFIndex = Int
/// The identifier of a Core Foundation type, as returned by `CFGetTypeID(_:)`.
public typealias CFTypeID = UInt
/// The hash of an object.
public typealias CFHashCode = UInt
/// Any object, for example the result of `SecItemCopyMatching(_:_:)`.
public typealias CFTypeRef = AnyObject
/// A string.
public typealias CFString = String
/// Bytes, as an object: `CFDataGetBytePtr(_:)` returns a pointer into it.
public typealias CFData = NSData
/// A date.
public typealias CFDate = Date
/// A number.
public typealias CFNumber = NSNumber
/// A Boolean, as an object.
public typealias CFBoolean = NSNumber
/// A dictionary, as passed to the SecItem functions.
public typealias CFDictionary = [String: Any]
/// A mutable dictionary; it can be passed to the SecItem functions as an `NSDictionary`.
public typealias CFMutableDictionary = NSMutableDictionary
/// An array.
public typealias CFArray = [Any]
/// An error: domain, code and user information.
public typealias CFError = NSError
/// The domain of an error.
public typealias CFErrorDomain = CFString

/// A source of memory.
///
/// It has no values; pass `kCFAllocatorDefault`.
public final class CFAllocator: Sendable {
    private init() {}
}

/// The default allocator.
public let kCFAllocatorDefault: CFAllocator! = nil

/// True, as an object.
public let kCFBooleanTrue: CFBoolean! = NSNumber(value: true)

/// False, as an object.
public let kCFBooleanFalse: CFBoolean! = NSNumber(value: false)

/// The Swift Boolean of a Boolean object.
///
/// - Parameter boolean: `kCFBooleanTrue` or `kCFBooleanFalse`.
/// - Returns: Whether it is true; false for nil.
public func CFBooleanGetValue(_ boolean: CFBoolean?) -> Bool {
    boolean?.boolValue ?? false
}
