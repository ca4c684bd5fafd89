// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// An item of the keychain as a type describes it, and the operations on it.
struct ItemDescription {
    enum Owner {
        case genericPassword(any GenericPasswordSecureStorable)
        case internetPassword(any InternetPasswordSecureStorable)
    }

    let owner: Owner
    /// The class and all attributes that the type defines.
    ///
    /// A new item has them, and reading and deleting search for them.
    let attributes: [String: Any]
    /// The primary key, by which an update finds the item regardless of its other attributes.
    private let identity: [String: Any]

    /// - Throws: ``LocksmithError/unimplemented`` for certificates and keys, ``LocksmithError/typeNotFound`` for other types.
    init(of storable: some SecureStorable) throws(LocksmithError) {
        if let password = storable as? any GenericPasswordSecureStorable {
            self.init(.genericPassword(password), key: Self.key(of: password), others: Self.others(of: password))
        } else if let password = storable as? any InternetPasswordSecureStorable {
            self.init(.internetPassword(password), key: Self.key(of: password), others: Self.others(of: password))
        } else if storable is any CertificateSecureStorable || storable is any KeySecureStorable {
            throw .unimplemented
        } else {
            throw .typeNotFound
        }
    }

    private init(_ owner: Owner, key: [String: Any], others: [String: Any?]) {
        let given = others.compactMapValues(\.self)
        self.owner = owner
        attributes = key.merging(given) { $1 }
        // A missing path or security domain is stored as the empty string, and both are part of the primary key.
        var identity = key
        if case .internetPassword = owner {
            for name in [kSecAttrPath as String, kSecAttrSecurityDomain as String] { identity[name] = given[name] ?? "" }
        }
        identity[kSecAttrAccessGroup as String] = given[kSecAttrAccessGroup as String]
        self.identity = identity
    }

    // MARK: Attributes

    private static func key(of password: any GenericPasswordSecureStorable) -> [String: Any] {
        [
            kSecClass as String: LocksmithSecurityClass.genericPassword.rawValue,
            kSecAttrAccount as String: password.account,
            kSecAttrService as String: password.service,
        ]
    }

    private static func others(of password: some GenericPasswordSecureStorable) -> [String: Any?] {
        common(to: password).merging([
            kSecAttrGeneric as String: password.generic as Data?,
            kSecAttrLabel as String: password.label,
        ]) { $1 }
    }

    private static func key(of password: any InternetPasswordSecureStorable) -> [String: Any] {
        [
            kSecClass as String: LocksmithSecurityClass.internetPassword.rawValue,
            kSecAttrAccount as String: password.account,
            kSecAttrAuthenticationType as String: password.authenticationType.rawValue,
            kSecAttrPort as String: password.port,
            kSecAttrProtocol as String: password.internetProtocol.rawValue,
            kSecAttrServer as String: password.server,
        ]
    }

    private static func others(of password: some InternetPasswordSecureStorable) -> [String: Any?] {
        common(to: password).merging([
            kSecAttrPath as String: password.path,
            kSecAttrSecurityDomain as String: password.securityDomain,
        ]) { $1 }
    }

    /// Returns the attributes that both kinds of passwords have.
    private static func common(
        to password: some DescribableSecureStorable & CommentableSecureStorable & CreatorDesignatableSecureStorable
            & TypeDesignatableSecureStorable & IsInvisibleAssignableSecureStorable & IsNegativeAssignableSecureStorable
    ) -> [String: Any?] {
        [
            kSecAttrAccessible as String: password.accessible?.rawValue,
            kSecAttrAccessGroup as String: password.accessGroup,
            kSecAttrComment as String: password.comment,
            kSecAttrCreator as String: password.creator,
            kSecAttrDescription as String: password.description,
            kSecAttrIsInvisible as String: password.isInvisible,
            kSecAttrIsNegative as String: password.isNegative,
            kSecAttrType as String: password.type,
        ]
    }

    // MARK: Requests

    func additionRequest(_ value: Data?) -> [String: Any] {
        var request = attributes
        request[kSecValueData as String] = value
        return request
    }

    var readingRequest: [String: Any] { Self.readingRequest(attributes) }

    private static func readingRequest(_ attributes: [String: Any]) -> [String: Any] {
        attributes.merging([
            kSecMatchLimit as String: kSecMatchLimitOne as String,
            kSecReturnAttributes as String: true,
            kSecReturnData as String: true,
        ]) { $1 }
    }

    /// The searches to try in order: first for the item that an update of the same type would store, then for any that matches.
    ///
    /// They differ for an internet password without a path or a security domain: an item with a path may hold another secret.
    private var searches: [[String: Any]] {
        let exact = attributes.merging(identity) { $1 }
        return exact.count == attributes.count ? [attributes] : [exact, attributes]
    }

    func create(_ value: Data, with closure: PerformRequestClosureType) throws(LocksmithError) {
        let status = RequestPerformer.perform(additionRequest(value), with: closure)
        guard status == errSecSuccess else { throw LocksmithError(status: status) }
    }

    /// Stores the item, or replaces it if it exists.
    func update(
        _ value: Data, with update: PerformUpdateRequestClosureType, orAddingWith add: PerformRequestClosureType
    ) throws(LocksmithError) {
        let addition = additionRequest(value)
        let changes = addition.filter { identity[$0.key] == nil }
        // One round is enough unless another thread or process adds or removes the same item between two calls. Only closures whose
        // results contradict each other reach the limit.
        var isDamaged = false
        for _ in 0..<1_000 {
            switch RequestPerformer.change(identity, to: changes, with: update) {
            case errSecSuccess: return
            // A damaged item cannot be updated, but adding an item replaces it; the keychain moves the damaged one to quarantine.
            case errSecDecode: isDamaged = true
            case errSecItemNotFound: isDamaged = false
            case let status: throw LocksmithError(status: status)
            }
            switch RequestPerformer.perform(addition, with: add) {
            case errSecSuccess: return
            case errSecDuplicateItem: continue
            case let status: throw LocksmithError(status: status)
            }
        }
        throw isDamaged ? .decode : .duplicate
    }

    /// Reads the item; returns nil if it does not exist.
    func read(with closure: PerformRequestClosureType) throws(LocksmithError) -> FoundItem? {
        guard let attributes = try readAttributes(with: closure) else { return nil }
        guard let value = attributes[kSecValueData as String] else { return FoundItem(attributes: attributes, data: nil) }
        guard let value = value as? Data else { throw .unreadableValue }
        return FoundItem(attributes: attributes, data: try KeyedArchiveReader.read(value))
    }

    private func readAttributes(with closure: PerformRequestClosureType) throws(LocksmithError) -> [String: Any]? {
        for search in searches {
            switch RequestPerformer.attributes(matching: Self.readingRequest(search), with: closure) {
            case (errSecSuccess, let attributes?): return attributes
            case (errSecSuccess, nil): throw .unreadableValue
            case (errSecItemNotFound, _): continue
            case (let status, _): throw LocksmithError(status: status)
            }
        }
        return nil
    }

    func delete(with closure: PerformRequestClosureType) throws(LocksmithError) {
        for search in searches {
            switch RequestPerformer.perform(search, with: closure) {
            case errSecSuccess: return
            case errSecItemNotFound: continue
            case let status: throw LocksmithError(status: status)
            }
        }
        throw .notFound
    }
}

/// All calls of this module to Keychain Services.
///
/// Platforms differ in the types that they coerce, so all calls are here and pass dictionaries with `String` keys only.
enum RequestPerformer {
    /// Performs the requests of types without closures of their own.
    // The pointers are used during the call only.
    static let add: @Sendable (CFDictionary, inout AnyObject?) -> OSStatus = { unsafe SecItemAdd($0, &$1) }
    static let copyMatching: @Sendable (CFDictionary, inout AnyObject?) -> OSStatus = { unsafe SecItemCopyMatching($0, &$1) }
    static let delete: @Sendable (CFDictionary, inout AnyObject?) -> OSStatus = { request, _ in SecItemDelete(request) }
    static let update: @Sendable (CFDictionary, CFDictionary) -> OSStatus = { query, attributes in SecItemUpdate(query, attributes) }

    /// Performs a request to update an item.
    static func change(
        _ query: [String: Any], to attributes: [String: Any], with closure: PerformUpdateRequestClosureType
    ) -> OSStatus {
        closure(query as CFDictionary, attributes as CFDictionary)
    }

    /// Performs a request without a result.
    static func perform(_ request: [String: Any], with closure: PerformRequestClosureType) -> OSStatus {
        var result: AnyObject?
        return closure(request as CFDictionary, &result)
    }

    /// Performs a request for the attributes and the value of one item.
    static func attributes(matching request: [String: Any], with closure: PerformRequestClosureType) -> (OSStatus, [String: Any]?) {
        var result: AnyObject?
        let status = closure(request as CFDictionary, &result)
        return (status, result as? [String: Any])
    }

    /// Performs a request for the attributes of all items that match.
    static func allAttributes(matching request: [String: Any]) -> (OSStatus, [[String: Any]]?) {
        var result: AnyObject?
        let status = copyMatching(request as CFDictionary, &result)
        return (status, result as? [[String: Any]])
    }
}
