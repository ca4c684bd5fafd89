// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// A key together with the type of its value.
///
///     extension ValetKey<Credentials> { static let github = ValetKey("github") }
///
///     try valet.set(credentials, for: .github)
///     let credentials = try valet.value(for: .github)
///
/// A value of the type `String` or `Data` is stored as it is, so that ``Valet/string(forKey:)``, other languages, and the command `valet`
/// see the same value. Any other value is encoded by the ``coder``, or by that of the valet.
public struct ValetKey<Value: Codable & Sendable>: Sendable {
    /// The key under which the value is stored.
    ///
    /// Keys are compared byte by byte.
    public let name: String
    /// What encodes and decodes the value; nil for the coder of the valet.
    public let coder: (any ValetCoder)?

    /// Creates a key.
    ///
    /// - Parameters:
    ///   - name: The key. It must not be empty, or each call that uses it throws ``ValetFailure/Reason/emptyKey``.
    ///   - coder: What encodes and decodes the value. If it is nil, the coder of the valet does: ``SecretStore/coder``. Not used for `String`
    ///     and `Data`.
    public init(_ name: String, coder: (any ValetCoder)? = nil) {
        self.name = name
        self.coder = coder
    }
}

extension ValetKey {
    /// Returns the bytes to store.
    func encode(_ value: Value, with valetCoder: any ValetCoder) throws(ValetFailure) -> Data {
        // The type decides, as in `decode`. A cast would also succeed for an optional.
        if Value.self == String.self, let text = value as? String { return Data(text.utf8) }
        if Value.self == Data.self, let data = value as? Data { return data }
        do {
            return try (coder ?? valetCoder).encode(value)
        } catch {
            throw ValetFailure(reason: .notEncodable(codingPath: (error as? EncodingError)?.codingPath ?? []), underlyingError: error)
        }
    }

    /// Returns the value that the stored bytes are.
    func decode(_ data: Data, with valetCoder: any ValetCoder) throws(ValetFailure) -> Value {
        if Value.self == Data.self, let value = data as? Value { return value }
        if Value.self == String.self {
            guard let value = String(exactUTF8: data) as? Value else { throw ValetFailure(reason: .notText) }
            return value
        }
        do {
            return try (coder ?? valetCoder).decode(Value.self, from: data)
        } catch {
            throw ValetFailure(reason: .notDecodable(codingPath: (error as? DecodingError)?.codingPath ?? []), underlyingError: error)
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
