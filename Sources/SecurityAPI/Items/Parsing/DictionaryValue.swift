// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainCore

/// A value of a caller's dictionary, parsed from any type.
enum DictionaryValue {
    case string(String)
    case data(Data)
    case boolean(Bool)
    case integer(Int64)
    /// A number that is not a 64-bit integer: a fraction, infinity, not a number, or too large.
    case unusableNumber
    case date(Date)
    case uuid(UUID)
    case accessControl(SecAccessControl)
    case authenticationContext(LAContext)
    /// `NSNull`, or an optional that is nil.
    case null
    /// A type that no key accepts.
    case other

    /// Parses `value`.
    ///
    /// Common types are recognized by their metatypes, which takes a few nanoseconds; a failed cast takes a hundred. Other types are cast.
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

    /// Parses an object by its class.
    private init(object: AnyObject) {
        switch object {
        case let number as NSNumber: self.init(number)
        case let text as NSString: self = .string(text as String)
        case let data as NSData:
            // The bytes are valid during the lifetime of the object, and are copied here. (`as Data` copies them one by one.)
            self = .data(unsafe Data(bytes: data.bytes, count: data.length))
        case let accessControl as SecAccessControl: self = .accessControl(accessControl)
        case let context as LAContext: self = .authenticationContext(context)
        case let date as NSDate: self = .date(date as Date)
        case let uuid as NSUUID: self = .uuid(uuid as UUID)
        case is NSNull: self = .null
        // A boxed value is an object of a private class; casts unwrap it.
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
        // Foundation has one object for each Boolean, and numbers are other objects.
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

/// Access to the wrapped value of an optional of unknown type.
private protocol OptionalValue {
    var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var wrappedValue: Any? { map { $0 as Any } }
}

/// The reason why a value is not valid for its key.
enum ValueFault: Error {
    /// No value of this type is valid.
    case type
    /// Other values of this type are valid.
    case value
}

extension DictionaryValue {
    /// Returns the value for an attribute of `kind`.
    ///
    /// Each kind accepts the same types as Apple's keychain, and preserves the caller's type.
    func attributeValue(_ kind: Attribute.Kind) throws(ValueFault) -> AttributeValue {
        switch kind {
        case .blob: try blob()
        case .string: .string(try text())
        case .accessibility: .string(try accessibility().rawValue)
        case .number: try number()
        case .flag: .number(try flag() ? 1 : 0)
        case .date: try date()
        case .sha1: try sha1()
        case .uuid: try identifier()
        }
    }

    /// Returns the protection class with this name, a string or UTF-8 data.
    func accessibility() throws(ValueFault) -> ItemAccessibility {
        if case .uuid = self { throw .type }
        guard let accessibility = ItemAccessibility(rawValue: try text()) else { throw .value }
        return accessibility
    }

    /// Returns a flag from a Boolean, a number, or a string that is a number.
    func flag() throws(ValueFault) -> Bool {
        switch self {
        case .boolean(let flag): return flag
        case .integer(let number): return number != 0
        case .string(let text):
            guard let number = Int64(text) else { throw .value }
            return number != 0
        case .unusableNumber: throw .value
        default: throw .type
        }
    }

    private func blob() throws(ValueFault) -> AttributeValue {
        switch self {
        case .string(let text): .string(text)
        case .data(let data): .data(data)
        case .integer(let number): .number(number)
        case .unusableNumber: throw .value
        default: throw .type
        }
    }

    private func text() throws(ValueFault) -> String {
        switch self {
        case .string(let text): return text
        case .data(let data):
            guard let text = String(validating: data, as: UTF8.self) else { throw .value }
            return text
        case .uuid(let uuid): return uuid.uuidString
        default: throw .type
        }
    }

    /// A string that is not a number remains a string: programs often pass `kSecAttrProtocol` as one.
    private func number() throws(ValueFault) -> AttributeValue {
        switch self {
        case .integer(let number): .number(number)
        case .boolean(let flag): .number(flag ? 1 : 0)
        case .string(let text): Int64(text).map(AttributeValue.number) ?? .string(text)
        case .unusableNumber: throw .value
        default: throw .type
        }
    }

    private func date() throws(ValueFault) -> AttributeValue {
        guard case .date(let date) = self else { throw .type }
        guard date.timeIntervalSinceReferenceDate.isFinite else { throw .value }
        return .date(date.timeIntervalSinceReferenceDate)
    }

    private func sha1() throws(ValueFault) -> AttributeValue {
        guard case .data(let data) = self else { throw .type }
        guard data.count == 20 else { throw .value }
        return .data(data)
    }

    private func identifier() throws(ValueFault) -> AttributeValue {
        switch self {
        case .null: return .data(Data())
        case .uuid(let uuid):
            let bytes = uuid.uuid
            return .data(unsafe withUnsafeBytes(of: bytes) { unsafe Data($0) })
        case .data(let data):
            guard data.isEmpty || data.count == 16 else { throw .value }
            return .data(data)
        default: throw .type
        }
    }
}

/// The types of keys other than attributes.
extension DictionaryValue {
    /// Returns a Boolean; rejects numbers.
    func asBoolean() throws(ValueFault) -> Bool {
        guard case .boolean(let flag) = self else { throw .type }
        return flag
    }

    /// Returns data; rejects types that could be converted, because the encoding of a secret must not be guessed.
    func asData() throws(ValueFault) -> Data {
        guard case .data(let data) = self else { throw .type }
        return data
    }

    func asAccessControl() throws(ValueFault) -> SecAccessControl {
        guard case .accessControl(let accessControl) = self else { throw .type }
        return accessControl
    }

    /// Whether prompts are allowed.
    ///
    /// Only the two restricting values forbid or skip them.
    var interaction: Authentication.Interaction {
        switch self {
        case .string(kSecUseAuthenticationUIFail): .forbidden
        case .string(kSecUseAuthenticationUISkip): .skippingItems
        default: .allowed
        }
    }

    /// Returns the limit from a number, `kSecMatchLimitOne`, or `kSecMatchLimitAll`; -1 also means all.
    func asLimit() throws(ValueFault) -> ParsedItemDictionary.Limit {
        switch self {
        case .string(kSecMatchLimitOne), .integer(1): return .one
        case .string(kSecMatchLimitAll), .integer(-1): return .all
        case .integer(let count):
            guard count >= 0 else { throw .value }
            return .count(Int(clamping: count))
        case .string, .unusableNumber: throw .value
        default: throw .type
        }
    }
}
