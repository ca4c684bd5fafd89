// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

internal import Foundation

/// The number of an object's type, to be compared with what the `…GetTypeID` functions tell.
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

/// The types an object around Keychain Services can have.
///
/// The numbers are Core Foundation's own business: only equality counts.
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
