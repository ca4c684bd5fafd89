// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

internal import Foundation

/// Whether two objects are equal by content.
///
/// - Parameters:
///   - first: An object, or nil.
///   - second: An object, or nil.
/// - Returns: Whether both are equal; two nils are.
public func CFEqual(_ first: CFTypeRef?, _ second: CFTypeRef?) -> Bool {
    guard let first, let second else { return first == nil && second == nil }
    if first === second { return true }
    guard let object = first as? NSObject else { return false }
    return object.isEqual(second)
}

/// The hash of an object by content.
///
/// - Parameter object: An object, or nil.
/// - Returns: The same number for equal objects; 0 for nil.
public func CFHash(_ object: CFTypeRef?) -> CFHashCode {
    guard let object else { return 0 }
    guard let hashable = object as? NSObject else { return CFHashCode(bitPattern: ObjectIdentifier(object).hashValue) }
    return CFHashCode(bitPattern: hashable.hash)
}
