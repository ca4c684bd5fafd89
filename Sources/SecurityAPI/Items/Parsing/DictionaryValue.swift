// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A value of a caller's dictionary, parsed from whatever type it came in.
///
/// Everything behind this works on these cases alone.
enum DictionaryValue {
    case string(String)
    case data(Data)
    case boolean(Bool)
    case integer(Int64)
    /// A number that is no whole number of 64 bits: a fraction, infinite, not a number, or too large.
    case unusableNumber
    case date(Date)
    case uuid(UUID)
    case accessControl(SecAccessControl)
    case authenticationContext(LAContext)
    /// Nothing: `NSNull`, or an optional that is nil.
    case null
    /// A type that no key takes.
    case other

    /// Parses `value`.
    ///
    /// The types that programs use are told apart by their metatypes, which costs a few nanoseconds where a failed cast costs a hundred;
    /// everything else goes the slow way.
    init(_ value: Any) {
        let type = type(of: value)
        if type == String.self, let text = value as? String {
            self = .string(text)
        } else if type == Bool.self, let flag = value as? Bool {
            self = .boolean(flag)
        } else if type == Data.self, let data = value as? Data {
            self = .data(data)
        } else if type == Int.self, let number = value as? Int {
            self = .integer(Int64(number))
        } else if type == AnyHashable.self, let hashable = value as? AnyHashable {
            self.init(hashable.base)
        } else if type is AnyClass {
            self.init(object: value as AnyObject)
        } else if let optional = value as? any OptionalValue {
            guard let wrapped = optional.wrappedValue else {
                self = .null
                return
            }
            self.init(wrapped)
        } else {
            self.init(uncommon: value)
        }
    }

    /// Objects, which are told apart by their class.
    private init(object: AnyObject) {
        switch object {
        case let number as NSNumber: self.init(number)
        case let text as NSString: self = .string(text as String)
        case let data as NSData:
            // The bytes live as long as the object, and are copied here. (`as Data` copies them one by one.)
            self = .data(unsafe Data(bytes: data.bytes, count: data.length))
        case let accessControl as SecAccessControl: self = .accessControl(accessControl)
        case let context as LAContext: self = .authenticationContext(context)
        case let date as NSDate: self = .date(date as Date)
        case let uuid as NSUUID: self = .uuid(uuid as UUID)
        case is NSNull: self = .null
        // A value that was boxed is inside an object of a class nobody can name; casts look into it.
        default: self.init(uncommon: object)
        }
    }

    private init(uncommon value: Any) {
        switch value {
        case let text as String: self = .string(text)
        case let text as Substring: self = .string(String(text))
        case let data as Data: self = .data(data)
        case let date as Date: self = .date(date)
        case let uuid as UUID: self = .uuid(uuid)
        case let integer as any BinaryInteger: self = Self.parse(integer)
        case let number as any BinaryFloatingPoint: self = Self.parse(number)
        case let number as NSNumber: self.init(number)
        default: self = .other
        }
    }

    private init(_ number: NSNumber) {
        // There are two Boolean objects, and no number is one of them.
        if number === kCFBooleanTrue {
            self = .boolean(true)
        } else if number === kCFBooleanFalse {
            self = .boolean(false)
        } else if let integer = Int64(exactly: number) {
            self = .integer(integer)
        } else {
            self = .unusableNumber
        }
    }

    private static func parse(_ number: some BinaryInteger) -> DictionaryValue {
        Int64(exactly: number).map(DictionaryValue.integer) ?? .unusableNumber
    }

    private static func parse(_ number: some BinaryFloatingPoint) -> DictionaryValue {
        Int64(exactly: number).map(DictionaryValue.integer) ?? .unusableNumber
    }
}

/// Looks into an optional whose wrapped type is not known.
private protocol OptionalValue {
    var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var wrappedValue: Any? { map { $0 as Any } }
}
