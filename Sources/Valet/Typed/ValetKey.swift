// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// A key together with the type of its value.
///
///     extension ValetKey<Credentials> { static let github = ValetKey("github") }
///
///     try valet.set(credentials, for: .github)
///     let credentials = try valet.value(for: .github)
///
/// A value of the type `String` or `Data` is stored as it is, so that ``Valet/string(forKey:)``, other languages, and the command `valet`
/// see the same value. Any other value is encoded by the ``coder``.
public struct ValetKey<Value: Codable & Sendable>: Sendable {
    /// The key under which the value is stored.
    ///
    /// Keys are compared byte by byte.
    public let name: String
    /// What encodes and decodes the value.
    public let coder: any ValetCoder

    /// Creates a key.
    ///
    /// - Parameters:
    ///   - name: The key. It must not be empty, or each call that uses it throws ``ValetFailure/Reason/emptyKey``.
    ///   - coder: What encodes and decodes the value; JSON by default. Not used for `String` and `Data`.
    public init(_ name: String, coder: any ValetCoder = JSONValetCoder()) {
        self.name = name
        self.coder = coder
    }
}

/// Encodes values to the bytes that a valet stores, and decodes them.
///
/// Two conforming types that store values under the same keys must have the same format.
public protocol ValetCoder: Sendable {
    /// Encodes a value.
    ///
    /// - Parameter value: The value.
    /// - Returns: The bytes. They must not be empty.
    /// - Throws: `EncodingError`, or another error if the value cannot be encoded.
    func encode<Value: Encodable>(_ value: Value) throws -> Data

    /// Decodes a value.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - data: The bytes that ``encode(_:)`` has returned, perhaps in another version of the program.
    /// - Returns: The value.
    /// - Throws: `DecodingError`, or another error if the bytes are not such a value.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value
}

/// JSON with sorted keys, so that equal values have equal bytes.
///
/// Dates and data have Foundation's default form.
///
/// Source: RFC 8259.
public struct JSONValetCoder: ValetCoder {
    /// Creates the coder.
    public init() {}

    /// Encodes a value as JSON.
    ///
    /// - Parameter value: The value.
    /// - Returns: The JSON text in UTF-8.
    /// - Throws: `EncodingError`.
    public func encode<Value: Encodable>(_ value: Value) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(value)
    }

    /// Decodes a value from JSON.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - data: The JSON text in UTF-8.
    /// - Returns: The value.
    /// - Throws: `DecodingError`.
    public func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        try JSONDecoder().decode(type, from: data)
    }
}

extension ValetKey {
    /// Returns the bytes to store.
    func encode(_ value: Value) throws(ValetFailure) -> Data {
        if let text = value as? String { return Data(text.utf8) }
        if let data = value as? Data { return data }
        do {
            return try coder.encode(value)
        } catch {
            throw ValetFailure(reason: .notEncodable(codingPath: (error as? EncodingError)?.codingPath ?? []))
        }
    }

    /// Returns the value that the stored bytes are.
    func decode(_ data: Data) throws(ValetFailure) -> Value {
        if Value.self == Data.self, let value = data as? Value { return value }
        if Value.self == String.self {
            guard let value = String(exactUTF8: data) as? Value else { throw ValetFailure(reason: .notText) }
            return value
        }
        do {
            return try coder.decode(Value.self, from: data)
        } catch {
            throw ValetFailure(reason: .notDecodable(codingPath: (error as? DecodingError)?.codingPath ?? []))
        }
    }
}

extension EncodingError {
    fileprivate var codingPath: [String] {
        guard case .invalidValue(_, let context) = self else { return [] }
        return context.codingPath.map(\.stringValue)
    }
}

extension DecodingError {
    /// The path to the part that does not fit; a missing key belongs to it.
    fileprivate var codingPath: [String] {
        switch self {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            context.codingPath.map(\.stringValue)
        case .keyNotFound(let key, let context): (context.codingPath + [key]).map(\.stringValue)
        @unknown default: []
        }
    }
}
