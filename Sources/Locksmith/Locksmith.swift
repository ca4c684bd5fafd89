// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainServices

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The service of items for which none is named: the bundle identifier, or `com.locksmith.defaultService` in a program without one.
public let LocksmithDefaultService: String = Bundle.main.bundleIdentifier ?? "com.locksmith.defaultService"

/// Keeps a dictionary for each user account of a service, in the keychain.
///
///     try Locksmith.saveData(["some key": "some value"], forUserAccount: "myUserAccount")
///     let dictionary = Locksmith.loadDataForUserAccount("myUserAccount")
///
/// For everything else that an item of the keychain can say, let a type of your own conform to the protocols, beginning with
/// ``SecureStorable``.
///
/// What is said of data, results and errors there holds here too. The functions can be called from any thread; they read from or write to
/// disk. Each has a second spelling, that of Locksmith 4.0.
public struct Locksmith {
    private init() {}

    // MARK: Saving

    /// Stores data for an account that has none yet.
    ///
    /// - Parameters:
    ///   - data: What to store; ``CreateableSecureStorable/data`` tells what it may hold.
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Throws: A ``LocksmithError``: ``LocksmithError/duplicate`` if there is data already, ``LocksmithError/unarchivable`` for data that cannot
    ///   be stored, and others.
    public static func saveData(
        _ data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) throws {
        try UserAccount(account: userAccount, service: service, data: data).createInSecureStore()
    }

    /// Stores data for an account that has none yet; the same as ``saveData(_:forUserAccount:inService:)``.
    ///
    /// - Parameters:
    ///   - data: What to store.
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Throws: A ``LocksmithError``.
    public static func saveData(
        data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) throws {
        try saveData(data, forUserAccount: userAccount, inService: service)
    }

    // MARK: Loading

    /// Reads the data of an account; nil tells not whether there is none or it cannot be read.
    ///
    /// ``tryLoadDataForUserAccount(_:inService:)`` does.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Returns: What was stored. Nil if there is nothing, it is locked, damaged or of other programs, or the keychain cannot be used.
    public static func loadDataForUserAccount(
        _ userAccount: String, inService service: String = LocksmithDefaultService
    ) -> [String: Any]? {
        try? tryLoadDataForUserAccount(userAccount, inService: service)
    }

    /// Reads the data of an account; the same as ``loadDataForUserAccount(_:inService:)``.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Returns: What was stored, or nil.
    public static func loadDataForUserAccount(
        userAccount: String, inService service: String = LocksmithDefaultService
    ) -> [String: Any]? {
        loadDataForUserAccount(userAccount, inService: service)
    }

    /// Reads the data of an account, and tells what cannot be read from nothing.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Returns: What was stored; nil if there is no item for the account.
    /// - Throws: A ``LocksmithError``, as ``ReadableSecureStorable/tryReadFromSecureStore()``; ``LocksmithError/decode`` also for an item without
    ///   a value, which only other programs store.
    public static func tryLoadDataForUserAccount(
        _ userAccount: String, inService service: String = LocksmithDefaultService
    ) throws -> [String: Any]? {
        guard let result = try UserAccount(account: userAccount, service: service).tryReadFromSecureStore() else { return nil }
        guard let data = result.data else { throw LocksmithError.unreadableValue }
        return data
    }

    // MARK: Updating

    /// Stores data for an account, in place of what may be there.
    ///
    /// - Parameters:
    ///   - data: What to store; ``CreateableSecureStorable/data`` tells what it may hold.
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Throws: A ``LocksmithError``. What was there is then still there.
    public static func updateData(
        _ data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) throws {
        try UserAccount(account: userAccount, service: service, data: data).updateInSecureStore()
    }

    /// Stores data for an account, in place of what may be there; the same as ``updateData(_:forUserAccount:inService:)``.
    ///
    /// - Parameters:
    ///   - data: What to store.
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Throws: A ``LocksmithError``.
    public static func updateData(
        data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) throws {
        try updateData(data, forUserAccount: userAccount, inService: service)
    }

    // MARK: Deleting

    /// Deletes the data of an account.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Throws: A ``LocksmithError``: ``LocksmithError/notFound`` if there is nothing, and others.
    public static func deleteDataForUserAccount(_ userAccount: String, inService service: String = LocksmithDefaultService) throws {
        try UserAccount(account: userAccount, service: service).deleteFromSecureStore()
    }

    /// Deletes the data of an account; the same as ``deleteDataForUserAccount(_:inService:)``.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service the account belongs to.
    /// - Throws: A ``LocksmithError``.
    public static func deleteDataForUserAccount(
        userAccount: String, inService service: String = LocksmithDefaultService
    ) throws {
        try deleteDataForUserAccount(userAccount, inService: service)
    }

    // MARK: Looking around

    /// The accounts of a service for which there are generic passwords, whoever stored them.
    ///
    /// Damaged items are left out as long as others are readable, since nobody can tell their account; `valet verify` lists them.
    ///
    /// - Parameter service: The service.
    /// - Returns: The accounts, each once and as Swift orders strings; none if there are none.
    /// - Throws: A ``LocksmithError``: ``LocksmithError/interactionNotAllowed`` if one of the items is locked, ``LocksmithError/decode`` if all
    ///   are damaged, and others.
    public static func userAccounts(inService service: String = LocksmithDefaultService) throws -> [String] {
        let (status, items) = SecItemClient.allAttributes(matching: [
            kSecClass as String: LocksmithSecurityClass.genericPassword.rawValue,
            kSecAttrService as String: service,
            kSecMatchLimit as String: kSecMatchLimitAll as String,
            kSecReturnAttributes as String: true,
        ])
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess else { throw LocksmithError(status: status) }
        guard let items else { throw LocksmithError.decode }
        // As bytes, since the keychain tells accounts apart that Swift takes for equal.
        return Set(items.compactMap { ($0[kSecAttrAccount as String] as? String).map { Array($0.utf8) } })
            .map { String(decoding: $0, as: UTF8.self) }
            .sorted()
    }

    /// The dictionary in the value of an item that was stored with this library, for example while migrating items.
    ///
    /// - Parameter value: The value, as Keychain Services and Valet deliver it.
    /// - Returns: What was stored.
    /// - Throws: ``LocksmithError/decode`` if it is no archive of a dictionary.
    public static func data(inValue value: Data) throws -> [String: Any] {
        try KeyedArchiveReader.read(value)
    }
}

/// What the functions of ``Locksmith`` do their work with.
private struct UserAccount: GenericPasswordSecureStorable, CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable {
    let account: String
    let service: String
    var data: [String: Any] = [:]
}
