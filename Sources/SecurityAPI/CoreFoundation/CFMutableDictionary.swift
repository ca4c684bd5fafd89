// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase, NeverUseImplicitlyUnwrappedOptionals
// The names are Apple's, and so are the implicitly unwrapped types.

public import Foundation

/// How a dictionary treats its keys.
///
/// Has no effect: a dictionary always retains and compares objects, as with `kCFTypeDictionaryKeyCallBacks`.
public struct CFDictionaryKeyCallBacks: Sendable {}

/// How a dictionary treats its values.
///
/// Has no effect: a dictionary always retains objects, as with `kCFTypeDictionaryValueCallBacks`.
public struct CFDictionaryValueCallBacks: Sendable {}

/// Keys are objects.
public let kCFTypeDictionaryKeyCallBacks = CFDictionaryKeyCallBacks()

/// Values are objects.
public let kCFTypeDictionaryValueCallBacks = CFDictionaryValueCallBacks()

/// Creates an empty dictionary.
///
/// Fill it with the methods of `NSMutableDictionary`.
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - capacity: Ignored: a dictionary grows as needed.
///   - keyCallBacks: Ignored.
///   - valueCallBacks: Ignored.
/// - Returns: The dictionary.
public func CFDictionaryCreateMutable(
    _ allocator: CFAllocator?, _ capacity: CFIndex, _ keyCallBacks: UnsafePointer<CFDictionaryKeyCallBacks>?,
    _ valueCallBacks: UnsafePointer<CFDictionaryValueCallBacks>?
) -> CFMutableDictionary! {
    NSMutableDictionary()
}

/// Creates a copy of a dictionary that can be changed.
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - capacity: Ignored: a dictionary grows as needed.
///   - dictionary: The dictionary. Nil is the empty dictionary.
/// - Returns: The copy.
public func CFDictionaryCreateMutableCopy(
    _ allocator: CFAllocator?, _ capacity: CFIndex, _ dictionary: CFDictionary?
) -> CFMutableDictionary! {
    NSMutableDictionary(dictionary: dictionary ?? [:])
}

/// Creates a copy of a Foundation dictionary; see the function above for a Swift dictionary.
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - capacity: Ignored.
///   - dictionary: The dictionary.
/// - Returns: The copy.
@_disfavoredOverload
public func CFDictionaryCreateMutableCopy(
    _ allocator: CFAllocator?, _ capacity: CFIndex, _ dictionary: NSDictionary
) -> CFMutableDictionary! {
    dictionary.mutableCopy() as? NSMutableDictionary
}

/// The number of entries of a dictionary.
///
/// - Parameter dictionary: The dictionary. Nil has no entries.
/// - Returns: The number.
public func CFDictionaryGetCount(_ dictionary: CFDictionary?) -> CFIndex { dictionary?.count ?? 0 }

/// The number of entries of a Foundation dictionary.
///
/// - Parameter dictionary: The dictionary.
/// - Returns: The number.
@_disfavoredOverload
public func CFDictionaryGetCount(_ dictionary: NSDictionary) -> CFIndex { dictionary.count }

/// Removes all entries of a dictionary.
///
/// - Parameter dictionary: The dictionary, or nil.
public func CFDictionaryRemoveAllValues(_ dictionary: CFMutableDictionary?) { dictionary?.removeAllObjects() }

/// The number of elements of an array.
///
/// - Parameter array: The array. Nil has no elements.
/// - Returns: The number.
public func CFArrayGetCount(_ array: CFArray?) -> CFIndex { array?.count ?? 0 }

// MARK: Functions that take or return pointers to objects

// Constants and strings are Swift strings, which are no objects, so there is no pointer to pass. Code that gets one with
// `unsafeBitCast(kSecClass, to: UnsafeRawPointer.self)` would compile and trap. These declarations make the compiler say so.

/// Not available: use the subscript of `NSMutableDictionary`.
@available(*, unavailable, message: "strings have no pointer on this platform; use the subscript of NSMutableDictionary")
public func CFDictionarySetValue(_ dictionary: CFMutableDictionary?, _ key: UnsafeRawPointer?, _ value: UnsafeRawPointer?) {}

/// Not available: use the subscript of `NSMutableDictionary`.
@available(*, unavailable, message: "strings have no pointer on this platform; use the subscript of NSMutableDictionary")
public func CFDictionaryAddValue(_ dictionary: CFMutableDictionary?, _ key: UnsafeRawPointer?, _ value: UnsafeRawPointer?) {}

/// Not available: use the subscript of `NSMutableDictionary`.
@available(*, unavailable, message: "strings have no pointer on this platform; use the subscript of NSMutableDictionary")
public func CFDictionaryReplaceValue(_ dictionary: CFMutableDictionary?, _ key: UnsafeRawPointer?, _ value: UnsafeRawPointer?) {}

/// Not available: use `NSMutableDictionary.removeObject(forKey:)`.
@available(*, unavailable, message: "strings have no pointer on this platform; use NSMutableDictionary.removeObject(forKey:)")
public func CFDictionaryRemoveValue(_ dictionary: CFMutableDictionary?, _ key: UnsafeRawPointer?) {}

/// Not available: cast the result with `as? [String: Any]`.
@available(*, unavailable, message: "strings have no pointer on this platform; use `as? [String: Any]` and a subscript")
public func CFDictionaryGetValue(_ dictionary: CFDictionary?, _ key: UnsafeRawPointer?) -> UnsafeRawPointer! { nil }

/// Not available: cast the result with `as? [[String: Any]]`.
@available(*, unavailable, message: "elements have no pointer on this platform; use `as? [[String: Any]]` and a subscript")
public func CFArrayGetValueAtIndex(_ array: CFArray?, _ index: CFIndex) -> UnsafeRawPointer! { nil }
