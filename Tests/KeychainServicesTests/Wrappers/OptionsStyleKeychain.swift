// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file
// Deliberately written in the style of such wrappers.

import Foundation
import KeychainServices

// Constants as `String(kSec…)`, an options structure and a status enumeration, as in wrappers of the whole API.
private let Class = String(kSecClass)
private let AttributeAccessible = String(kSecAttrAccessible)
private let AttributeAccessControl = String(kSecAttrAccessControl)
private let AttributeAccessGroup = String(kSecAttrAccessGroup)
private let AttributeSynchronizable = String(kSecAttrSynchronizable)
private let AttributeCreationDate = String(kSecAttrCreationDate)
private let AttributeLabel = String(kSecAttrLabel)
private let AttributeComment = String(kSecAttrComment)
private let AttributeAccount = String(kSecAttrAccount)
private let AttributeService = String(kSecAttrService)
private let AttributeServer = String(kSecAttrServer)
private let AttributeProtocol = String(kSecAttrProtocol)
private let AttributeAuthenticationType = String(kSecAttrAuthenticationType)
private let AttributePort = String(kSecAttrPort)
private let SynchronizableAny = kSecAttrSynchronizableAny
private let MatchLimit = String(kSecMatchLimit)
private let MatchLimitOne = kSecMatchLimitOne
private let MatchLimitAll = kSecMatchLimitAll
private let ReturnData = String(kSecReturnData)
private let ReturnAttributes = String(kSecReturnAttributes)
private let ReturnPersistentRef = String(kSecReturnPersistentRef)
private let ValueData = String(kSecValueData)
private let ValuePersistentRef = String(kSecValuePersistentRef)
private let UseAuthenticationUI = String(kSecUseAuthenticationUI)
private let UseAuthenticationUIFail = String(kSecUseAuthenticationUIFail)

/// A wrapper around a value that is changed by chaining, for both classes of passwords.
public final class OptionsStyleKeychain {
    public enum ItemClass {
        case genericPassword
        case internetPassword
    }

    public struct AuthenticationPolicy: OptionSet {
        public static let userPresence = AuthenticationPolicy(rawValue: 1 << 0)
        public static let devicePasscode = AuthenticationPolicy(rawValue: 1 << 4)
        public static let or = AuthenticationPolicy(rawValue: 1 << 14)
        public static let and = AuthenticationPolicy(rawValue: 1 << 15)

        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
    }

    public enum Accessibility {
        case whenUnlocked
        case afterFirstUnlock
        case always
        case whenPasscodeSetThisDeviceOnly
        case whenUnlockedThisDeviceOnly
        case afterFirstUnlockThisDeviceOnly
        case alwaysThisDeviceOnly
    }

    public struct Attributes {
        public var data: Data? { attributes[ValueData] as? Data }
        public var persistentRef: Data? { attributes[ValuePersistentRef] as? Data }
        public var accessible: String? { attributes[AttributeAccessible] as? String }
        public var accessControl: SecAccessControl? {
            guard let accessControl = attributes[AttributeAccessControl] else { return nil }
            return (accessControl as! SecAccessControl)
        }
        public var synchronizable: Bool? { attributes[AttributeSynchronizable] as? Bool }
        public var creationDate: Date? { attributes[AttributeCreationDate] as? Date }
        public var label: String? { attributes[AttributeLabel] as? String }
        public var comment: String? { attributes[AttributeComment] as? String }
        public var account: String? { attributes[AttributeAccount] as? String }
        public var port: Int? { attributes[AttributePort] as? Int }

        fileprivate let attributes: [String: Any]
    }

    fileprivate struct Options {
        var itemClass = ItemClass.genericPassword
        var service = ""
        var server: URL!
        var accessibility = Accessibility.afterFirstUnlock
        var authenticationPolicy: AuthenticationPolicy?
        var synchronizable = false
        var label: String?
        var comment: String?
        var attributes = [String: Any]()
    }

    private let options: Options

    public init(service: String) {
        var options = Options()
        options.service = service
        self.options = options
    }

    public init(server: URL) {
        var options = Options()
        options.itemClass = .internetPassword
        options.server = server
        self.options = options
    }

    private init(_ options: Options) {
        self.options = options
    }

    public func accessibility(_ accessibility: Accessibility) -> OptionsStyleKeychain {
        with { $0.accessibility = accessibility }
    }

    public func accessibility(_ accessibility: Accessibility, policy: AuthenticationPolicy) -> OptionsStyleKeychain {
        with {
            $0.accessibility = accessibility
            $0.authenticationPolicy = policy
        }
    }

    public func synchronizable(_ synchronizable: Bool) -> OptionsStyleKeychain { with { $0.synchronizable = synchronizable } }

    public func label(_ label: String) -> OptionsStyleKeychain { with { $0.label = label } }

    public func comment(_ comment: String) -> OptionsStyleKeychain { with { $0.comment = comment } }

    private func with(_ change: (inout Options) -> Void) -> OptionsStyleKeychain {
        var options = self.options
        change(&options)
        return OptionsStyleKeychain(options)
    }

    // MARK:

    public func get(_ key: String) throws -> String? {
        guard let data = try getData(key) else { return nil }
        guard let string = String(data: data, encoding: .utf8) else { throw KeychainStatus.conversionError }
        return string
    }

    public func getData(_ key: String) throws -> Data? {
        var query = options.query()
        query[MatchLimit] = MatchLimitOne
        query[ReturnData] = kCFBooleanTrue
        query[AttributeAccount] = key

        var result: AnyObject?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        switch status {
        case errSecSuccess:
            guard let data = result as? Data else { throw KeychainStatus.unexpectedError }
            return data
        case errSecItemNotFound:
            return nil
        default:
            throw securityError(status: status)
        }
    }

    public func get<T>(_ key: String, handler: (Attributes?) -> T) throws -> T {
        var query = options.query()
        query[MatchLimit] = MatchLimitOne
        query[ReturnData] = kCFBooleanTrue
        query[ReturnAttributes] = kCFBooleanTrue
        query[ReturnPersistentRef] = kCFBooleanTrue
        query[AttributeAccount] = key

        var result: AnyObject?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        switch status {
        case errSecSuccess:
            guard let attributes = result as? [String: Any] else { throw KeychainStatus.unexpectedError }
            return handler(Attributes(attributes: attributes))
        case errSecItemNotFound:
            return handler(nil)
        default:
            throw securityError(status: status)
        }
    }

    public func set(_ value: String, key: String) throws {
        guard let data = value.data(using: .utf8, allowLossyConversion: false) else { throw KeychainStatus.conversionError }
        try set(data, key: key)
    }

    public func set(_ value: Data, key: String) throws {
        var query = options.query()
        query[AttributeAccount] = key
        query[UseAuthenticationUI] = UseAuthenticationUIFail

        var status = SecItemCopyMatching(query as CFDictionary, nil)
        switch status {
        case errSecSuccess, errSecInteractionNotAllowed:
            var query = options.query()
            query[AttributeAccount] = key
            var (attributes, error) = options.attributes(key: nil, value: value)
            if let error = error {
                print(error.localizedDescription)
                throw error
            }
            options.attributes.forEach { attributes.updateValue($1, forKey: $0) }
            status = SecItemUpdate(query as CFDictionary, attributes as CFDictionary)
            if status != errSecSuccess { throw securityError(status: status) }
        case errSecItemNotFound:
            var (attributes, error) = options.attributes(key: key, value: value)
            if let error = error { throw error }
            options.attributes.forEach { attributes.updateValue($1, forKey: $0) }
            status = SecItemAdd(attributes as CFDictionary, nil)
            if status != errSecSuccess { throw securityError(status: status) }
        default:
            throw securityError(status: status)
        }
    }

    public func contains(_ key: String) throws -> Bool {
        var query = options.query()
        query[AttributeAccount] = key
        let status = SecItemCopyMatching(query as CFDictionary, nil)
        switch status {
        case errSecSuccess: return true
        case errSecItemNotFound: return false
        default: throw securityError(status: status)
        }
    }

    public func remove(_ key: String) throws {
        var query = options.query()
        query[AttributeAccount] = key
        let status = SecItemDelete(query as CFDictionary)
        if status != errSecSuccess && status != errSecItemNotFound { throw securityError(status: status) }
    }

    public func removeAll() throws {
        let status = SecItemDelete(options.query() as CFDictionary)
        if status != errSecSuccess && status != errSecItemNotFound { throw securityError(status: status) }
    }

    public func allKeys() -> [String] {
        items().compactMap { $0[AttributeAccount] as? String }
    }

    public subscript(key: String) -> String? {
        get { try? get(key) }
        set {
            if let value = newValue { try? set(value, key: key) } else { try? remove(key) }
        }
    }

    private func items() -> [[String: Any]] {
        var query = options.query()
        query[MatchLimit] = MatchLimitAll
        query[ReturnAttributes] = kCFBooleanTrue
        query[ReturnData] = kCFBooleanTrue

        var result: AnyObject?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        switch status {
        case errSecSuccess:
            if let items = result as? [[String: Any]] { return items }
        case errSecItemNotFound:
            return []
        default: ()
        }
        return []
    }

    @discardableResult private func securityError(status: OSStatus) -> Error {
        KeychainStatus(status: status)
    }
}

extension OptionsStyleKeychain.Options {
    func query() -> [String: Any] {
        var query = [String: Any]()
        query[Class] = itemClass.rawValue
        query[AttributeSynchronizable] = SynchronizableAny
        switch itemClass {
        case .genericPassword:
            query[AttributeService] = service
        case .internetPassword:
            query[AttributeServer] = server.host
            query[AttributePort] = server.port
            query[AttributeProtocol] = kSecAttrProtocolHTTPS
            query[AttributeAuthenticationType] = String(kSecAttrAuthenticationTypeDefault)
        }
        return query
    }

    func attributes(key: String?, value: Data) -> ([String: Any], Error?) {
        var attributes: [String: Any]
        if let key = key {
            attributes = query()
            attributes[AttributeAccount] = key
        } else {
            attributes = [String: Any]()
        }
        attributes[ValueData] = value
        if let label = label { attributes[AttributeLabel] = label }
        if let comment = comment { attributes[AttributeComment] = comment }

        if let policy = authenticationPolicy {
            var error: Unmanaged<CFError>?
            guard
                let accessControl = SecAccessControlCreateWithFlags(
                    kCFAllocatorDefault, accessibility.rawValue as CFTypeRef,
                    SecAccessControlCreateFlags(rawValue: CFOptionFlags(policy.rawValue)), &error)
            else {
                if let error = error?.takeUnretainedValue() { return (attributes, error.error) }
                return (attributes, KeychainStatus.unexpectedError)
            }
            attributes[AttributeAccessControl] = accessControl
        } else {
            attributes[AttributeAccessible] = accessibility.rawValue
        }
        attributes[AttributeSynchronizable] = synchronizable as NSNumber
        return (attributes, nil)
    }
}

extension OptionsStyleKeychain.ItemClass: RawRepresentable {
    public init?(rawValue: String) {
        switch rawValue {
        case String(kSecClassGenericPassword): self = .genericPassword
        case String(kSecClassInternetPassword): self = .internetPassword
        default: return nil
        }
    }

    public var rawValue: String {
        switch self {
        case .genericPassword: return String(kSecClassGenericPassword)
        case .internetPassword: return String(kSecClassInternetPassword)
        }
    }
}

extension OptionsStyleKeychain.Accessibility {
    var rawValue: String {
        switch self {
        case .whenUnlocked: return String(kSecAttrAccessibleWhenUnlocked)
        case .afterFirstUnlock: return String(kSecAttrAccessibleAfterFirstUnlock)
        case .always: return String(kSecAttrAccessibleAlways)
        case .whenPasscodeSetThisDeviceOnly: return String(kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
        case .whenUnlockedThisDeviceOnly: return String(kSecAttrAccessibleWhenUnlockedThisDeviceOnly)
        case .afterFirstUnlockThisDeviceOnly: return String(kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly)
        case .alwaysThisDeviceOnly: return String(kSecAttrAccessibleAlwaysThisDeviceOnly)
        }
    }
}

extension CFError {
    var error: NSError {
        let domain = CFErrorGetDomain(self) as String
        let code = CFErrorGetCode(self)
        let userInfo = CFErrorCopyUserInfo(self) as? [String: Any]
        return NSError(domain: domain, code: code, userInfo: userInfo)
    }
}

public enum KeychainStatus: OSStatus, Error {
    case success = 0
    case unimplemented = -4
    case param = -50
    case notAvailable = -25291
    case authFailed = -25293
    case duplicateItem = -25299
    case itemNotFound = -25300
    case interactionNotAllowed = -25308
    case missingEntitlement = -34018
    case conversionError = -67594
    case unexpectedError = -99999

    public init(status: OSStatus) {
        self = KeychainStatus(rawValue: status) ?? .unexpectedError
    }
}

extension KeychainStatus: CustomStringConvertible {
    public var description: String {
        (SecCopyErrorMessageString(rawValue, nil) as String?) ?? "unknown"
    }
}
