// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import KeychainCore

/// Why a value does not fit its key.
enum ValueFault: Error {
    /// No value of this type fits.
    case type
    /// Another value of this type would.
    case value
}

extension DictionaryValue {
    /// The value as an attribute of `kind` keeps it.
    ///
    /// Each kind accepts the types Apple's keychain accepts, and keeps the caller's type.
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

    /// A protection class: its name, as a string or as UTF-8.
    func accessibility() throws(ValueFault) -> Accessibility {
        if case .uuid = self { throw .type }
        guard let accessibility = Accessibility(rawValue: try text()) else { throw .value }
        return accessibility
    }

    /// Yes or no: a Boolean, a number, or a string that is a number.
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

    /// A string that is no number stays a string: `kSecAttrProtocol` is often given as one.
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
