// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase, NeverUseImplicitlyUnwrappedOptionals
// The names are Apple's, and both `kCFBooleanTrue` and `kCFBooleanTrue!` are written.

public import Foundation

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
