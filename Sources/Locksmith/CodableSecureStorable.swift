// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// An item whose data is a value of one type.
///
///     struct TwitterAccount: CodableSecureStorable, GenericPasswordSecureStorable {
///         struct Payload: Codable { var password: String; var tokens: [String] }
///         let account: String
///         let service = "Twitter"
///     }
///
/// The item stores the value as JSON under the key `payload` of its data dictionary, so it can be read like any other item.
public protocol CodableSecureStorable: ReadableSecureStorable {
    /// The type of the value; `typealias Payload = Credentials` uses an existing type.
    associatedtype Payload: Codable
}

extension CodableSecureStorable {
    /// Stores a value in a new item.
    ///
    /// - Parameter payload: The value.
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/duplicate`` if the item exists or ``LocksmithError/unarchivable`` for a
    ///   value that JSON cannot represent; or an error of the type's own encoding.
    public func createInSecureStore(payload: Payload) throws {
        try ItemDescription(of: self).create(Self.archive(payload), with: creationClosure)
    }

    /// Stores a value in the item, and adds the item if it does not exist.
    ///
    /// - Parameter payload: The value.
    /// - Throws: A ``LocksmithError``, or an error of the type's own encoding. The previous value is then still stored, except after a disk
    ///   error while the change was flushed: then the outcome is unknown.
    public func updateInSecureStore(payload: Payload) throws {
        try ItemDescription(of: self).update(Self.archive(payload), with: updateClosure, orAddingWith: creationClosure)
    }

    /// Reads the value of the item.
    ///
    /// - Returns: The value; nil if the item does not exist.
    /// - Throws: A ``LocksmithError``: ``LocksmithError/decode`` if the item does not contain a value of this type.
    public func readPayloadFromSecureStore() throws -> Payload? {
        let result: (any SecureStorableResultType)? = try tryReadFromSecureStore()
        return try result?.payload(as: Payload.self)
    }

    private var creationClosure: PerformRequestClosureType {
        (self as? any CreateableSecureStorable)?.performCreateRequestClosure ?? RequestPerformer.add
    }

    private var updateClosure: PerformUpdateRequestClosureType {
        (self as? any CreateableSecureStorable)?.performUpdateRequestClosure ?? RequestPerformer.update
    }

    private static func archive(_ payload: Payload) throws -> Data {
        do {
            return try KeyedArchiveWriter.write([payloadKey: JSONEncoder().encode(payload)])
        } catch EncodingError.invalidValue(_, let context) {
            // The error itself contains the value, which may be secret.
            throw LocksmithError.unarchivable(key: context.codingPath.readable)
        }
    }
}

extension SecureStorableResultType {
    /// The value that a ``CodableSecureStorable`` stored.
    ///
    /// - Parameter type: The type of the value.
    /// - Returns: The value.
    /// - Throws: ``LocksmithError/decode`` if the item does not contain a value of this type; ``LocksmithError/key`` is the path of the
    ///   part that could not be decoded.
    public func payload<Payload: Decodable>(as type: Payload.Type) throws -> Payload {
        guard let json = data?[payloadKey] as? Data else { throw LocksmithError.unreadableValue }
        do {
            return try JSONDecoder().decode(type, from: json)
        } catch let error as DecodingError {
            // The path only: the rest of the error may quote the value.
            throw LocksmithError.decode(key: error.codingPath.readable)
        } catch {
            // An error of the type's own decoding, which may quote the value.
            throw LocksmithError.unreadableValue
        }
    }
}

private let payloadKey = "payload"

extension DecodingError {
    /// The path of the value that could not be decoded.
    fileprivate var codingPath: [any CodingKey] {
        switch self {
        case .keyNotFound(let key, let context): context.codingPath + [key]
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context): context.codingPath
        @unknown default: []
        }
    }
}

extension [any CodingKey] {
    /// The path in the form of other keys: `payload.tokens[2]`.
    fileprivate var readable: String {
        reduce(payloadKey) { path, key in key.intValue.map { "\(path)[\($0)]" } ?? "\(path).\(key.stringValue)" }
    }
}
