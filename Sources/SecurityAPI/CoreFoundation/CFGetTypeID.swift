// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

internal import Foundation

/// Returns the type identifier of an object, to compare with the results of the `…GetTypeID` functions.
///
/// - Parameter object: An object, or nil.
/// - Returns: The number of its type, 0 if Keychain Services has no such type.
public func CFGetTypeID(_ object: CFTypeRef?) -> CFTypeID {
    let type: CoreFoundationType? =
        switch object {
        case is SecAccessControl: .accessControl
        case is NSString: .string
        case is NSData: .data
        case let number as NSNumber: number === kCFBooleanTrue || number === kCFBooleanFalse ? .boolean : .number
        case is NSDictionary: .dictionary
        case is NSArray: .array
        case is NSDate: .date
        case is NSError: .error
        default: nil
        }
    return type?.rawValue ?? 0
}

/// The types of objects that Keychain Services uses.
///
/// The numbers differ from Core Foundation's: compare them only for equality.
enum CoreFoundationType: CFTypeID {
    case string = 1
    case data
    case number
    case boolean
    case dictionary
    case array
    case date
    case error
    case accessControl
    case key
    case certificate
    case identity
    case trust
}

/// The type number of strings.
public func CFStringGetTypeID() -> CFTypeID { CoreFoundationType.string.rawValue }

/// The type number of data.
public func CFDataGetTypeID() -> CFTypeID { CoreFoundationType.data.rawValue }

/// The type number of numbers; Booleans have their own.
public func CFNumberGetTypeID() -> CFTypeID { CoreFoundationType.number.rawValue }

/// The type number of Booleans.
public func CFBooleanGetTypeID() -> CFTypeID { CoreFoundationType.boolean.rawValue }

/// The type number of dictionaries.
public func CFDictionaryGetTypeID() -> CFTypeID { CoreFoundationType.dictionary.rawValue }

/// The type number of arrays.
public func CFArrayGetTypeID() -> CFTypeID { CoreFoundationType.array.rawValue }

/// The type number of dates.
public func CFDateGetTypeID() -> CFTypeID { CoreFoundationType.date.rawValue }

/// The type number of errors.
public func CFErrorGetTypeID() -> CFTypeID { CoreFoundationType.error.rawValue }

/// Whether two objects are equal by content.
///
/// - Parameters:
///   - first: An object, or nil.
///   - second: An object, or nil.
/// - Returns: True if both are equal or both are nil.
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
