// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// Something whose data is a value of one type.
///
///     struct TwitterAccount: CodableSecureStorable, GenericPasswordSecureStorable {
///         struct Payload: Codable { var password: String; var tokens: [String] }
///         let account: String
///         let service = "Twitter"
///     }
///
/// The value is stored as JSON under the key `payload` of the dictionary that other types give as their data, so the item can be read as any other.
public protocol CodableSecureStorable: ReadableSecureStorable {
    /// The type of the value; `typealias Payload = Credentials` names one that is there already.
    associatedtype Payload: Codable
}

extension CodableSecureStorable {
    /// Stores a value in a new item.
    ///
    /// - Parameter payload: The value.
    /// - Throws: A ``LocksmithError``: ``LocksmithError/duplicate`` if the item is there already, ``LocksmithError/unarchivable`` for a value
    ///   that JSON cannot hold, and others; or what the type's own encoding throws.
    public func createInSecureStore(payload: Payload) throws {
        try ItemDescription(of: self).create(Self.archive(payload), with: creationClosure)
    }

    /// Stores a value in the item, which is added if it is not there.
    ///
    /// - Parameter payload: The value.
    /// - Throws: A ``LocksmithError``, or what the type's own encoding throws. The value that was there is then still there.
    public func updateInSecureStore(payload: Payload) throws {
        try ItemDescription(of: self).update(Self.archive(payload), with: updateClosure, orAddingWith: creationClosure)
    }

    /// Reads the value of the item.
    ///
    /// - Returns: The value; nil if there is no such item.
    /// - Throws: A ``LocksmithError``, ``LocksmithError/decode`` if the item holds no value of this type.
    public func readPayloadFromSecureStore() throws -> Payload? {
        let result: (any SecureStorableResultType)? = try tryReadFromSecureStore()
        return try result?.payload(as: Payload.self)
    }

    private var creationClosure: PerformRequestClosureType {
        (self as? any CreateableSecureStorable)?.performCreateRequestClosure ?? SecItemClient.add
    }

    private var updateClosure: PerformUpdateRequestClosureType {
        (self as? any CreateableSecureStorable)?.performUpdateRequestClosure ?? SecItemClient.update
    }

    private static func archive(_ payload: Payload) throws -> Data {
        do {
            return try KeyedArchiveWriter.write([payloadKey: JSONEncoder().encode(payload)])
        } catch EncodingError.invalidValue(_, let context) {
            // The error itself holds the value.
            throw LocksmithError.unarchivable(key: context.codingPath.readable)
        }
    }
}

extension SecureStorableResultType {
    /// The value that a ``CodableSecureStorable`` stored.
    ///
    /// - Parameter type: The type of the value.
    /// - Returns: The value.
    /// - Throws: ``LocksmithError/decode`` if the item holds no value of this type; ``LocksmithError/key`` tells which part of it is not as it
    ///   should be, by the keys of the value.
    public func payload<Payload: Decodable>(as type: Payload.Type) throws -> Payload {
        guard let json = data?[payloadKey] as? Data else { throw LocksmithError.unreadableValue }
        do {
            return try JSONDecoder().decode(type, from: json)
        } catch let error as DecodingError {
            // Only where: what the error says besides may quote the value.
            throw LocksmithError.decode(key: error.codingPath.readable)
        } catch {
            // The type's own, which may say anything.
            throw LocksmithError.unreadableValue
        }
    }
}

private let payloadKey = "payload"

extension DecodingError {
    /// Where the value stands that could not be read.
    fileprivate var codingPath: [any CodingKey] {
        switch self {
        case .keyNotFound(let key, let context): context.codingPath + [key]
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context): context.codingPath
        @unknown default: []
        }
    }
}

extension [any CodingKey] {
    /// As the keys of other data are written: `payload.tokens[2]`.
    fileprivate var readable: String {
        reduce(payloadKey) { path, key in key.intValue.map { "\(path)[\($0)]" } ?? "\(path).\(key.stringValue)" }
    }
}
