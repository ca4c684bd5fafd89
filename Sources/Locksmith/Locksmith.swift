// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainServices

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The default service: the bundle identifier, or `com.locksmith.defaultService` in a program without one.
public let LocksmithDefaultService: String = Bundle.main.bundleIdentifier ?? "com.locksmith.defaultService"

/// A store of one dictionary for each user account of a service, in the keychain.
///
///     try Locksmith.saveData(["some key": "some value"], forUserAccount: "myUserAccount")
///     let dictionary = Locksmith.loadDataForUserAccount("myUserAccount")
///
/// For other attributes of a keychain item, conform a type of your own to the protocols, beginning with ``SecureStorable``. Their
/// documentation of data, results, and errors applies here too.
///
/// The functions can be called from any thread. They read from or write to the disk. Each has a second spelling, that of Locksmith 4.0.
public struct Locksmith {
    private init() {}

    // MARK: Saving

    /// Stores data for an account that has no data yet.
    ///
    /// - Parameters:
    ///   - data: The data; see ``CreateableSecureStorable/data`` for the permitted types.
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/duplicate`` if the account has data or ``LocksmithError/unarchivable``
    ///   for data that cannot be stored.
    public static func saveData(
        _ data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) throws {
        try UserAccount(account: userAccount, service: service, data: data).createInSecureStore()
    }

    /// Stores data for an account that has no data yet; the same as ``saveData(_:forUserAccount:inService:)``.
    ///
    /// - Parameters:
    ///   - data: The data.
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Throws: A ``LocksmithError``.
    public static func saveData(
        data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) throws {
        try saveData(data, forUserAccount: userAccount, inService: service)
    }

    // MARK: Loading

    /// Reads the data of an account; returns nil if it is missing or cannot be read.
    ///
    /// ``tryLoadDataForUserAccount(_:inService:)`` distinguishes the two.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Returns: The data. Nil if there is none, if it is locked, damaged, or from another program, or if the keychain cannot be used.
    public static func loadDataForUserAccount(
        _ userAccount: String, inService service: String = LocksmithDefaultService
    ) -> [String: Any]? {
        try? tryLoadDataForUserAccount(userAccount, inService: service)
    }

    /// Reads the data of an account; the same as ``loadDataForUserAccount(_:inService:)``.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Returns: The data, or nil.
    public static func loadDataForUserAccount(
        userAccount: String, inService service: String = LocksmithDefaultService
    ) -> [String: Any]? {
        loadDataForUserAccount(userAccount, inService: service)
    }

    /// Reads the data of an account, and throws if it cannot be read.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Returns: The data; nil if there is no item for the account.
    /// - Throws: The errors of ``ReadableSecureStorable/tryReadFromSecureStore()``; ``LocksmithError/decode`` also for an item without a
    ///   value, which only other programs store.
    public static func tryLoadDataForUserAccount(
        _ userAccount: String, inService service: String = LocksmithDefaultService
    ) throws -> [String: Any]? {
        guard let result = try UserAccount(account: userAccount, service: service).tryReadFromSecureStore() else { return nil }
        guard let data = result.data else { throw LocksmithError.unreadableValue }
        return data
    }

    // MARK: Updating

    /// Stores data for an account, or replaces its data.
    ///
    /// - Parameters:
    ///   - data: The data; see ``CreateableSecureStorable/data`` for the permitted types.
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Throws: A ``LocksmithError``. The previous data is then still stored, except after a disk error while the change was flushed: then
    ///   the outcome is unknown.
    public static func updateData(
        _ data: [String: Any], forUserAccount userAccount: String, inService service: String = LocksmithDefaultService
    ) throws {
        try UserAccount(account: userAccount, service: service, data: data).updateInSecureStore()
    }

    /// Stores data for an account, or replaces its data; the same as ``updateData(_:forUserAccount:inService:)``.
    ///
    /// - Parameters:
    ///   - data: The data.
    ///   - userAccount: The account.
    ///   - service: The service of the account.
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
    ///   - service: The service of the account.
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/notFound`` if there is no data.
    public static func deleteDataForUserAccount(_ userAccount: String, inService service: String = LocksmithDefaultService) throws {
        try UserAccount(account: userAccount, service: service).deleteFromSecureStore()
    }

    /// Deletes the data of an account; the same as ``deleteDataForUserAccount(_:inService:)``.
    ///
    /// - Parameters:
    ///   - userAccount: The account.
    ///   - service: The service of the account.
    /// - Throws: A ``LocksmithError``.
    public static func deleteDataForUserAccount(
        userAccount: String, inService service: String = LocksmithDefaultService
    ) throws {
        try deleteDataForUserAccount(userAccount, inService: service)
    }

    // MARK: Listing

    /// Returns the accounts of all generic passwords of a service, including those that other programs stored.
    ///
    /// If other items are readable, damaged ones are left out, because their accounts cannot be read; `valet verify` lists them. Accounts that
    /// are not text are left out too.
    ///
    /// - Parameter service: The service.
    /// - Returns: The accounts, each once, in Swift's order of strings; empty if there are none.
    /// - Throws: A ``LocksmithError``, for example ``LocksmithError/interactionNotAllowed`` if an item is locked or
    ///   ``LocksmithError/decode`` if all are damaged.
    public static func userAccounts(inService service: String = LocksmithDefaultService) throws -> [String] {
        let (status, items) = RequestPerformer.allAttributes(matching: [
            kSecClass as String: LocksmithSecurityClass.genericPassword.rawValue,
            kSecAttrService as String: service,
            kSecMatchLimit as String: kSecMatchLimitAll as String,
            kSecReturnAttributes as String: true,
        ])
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess else { throw LocksmithError(status: status) }
        guard let items else { throw LocksmithError.decode }
        // As bytes: accounts that are canonically equivalent are different in the keychain.
        return Set(items.compactMap { $0[kSecAttrAccount as String].flatMap(FoundItem.text).map { Array($0.utf8) } })
            .map { String(decoding: $0, as: UTF8.self) }
            .sorted()
    }

    /// Returns the dictionary in the value of an item that was stored with this library, for example during a migration.
    ///
    /// - Parameter value: The value that Keychain Services or Valet returned.
    /// - Returns: The dictionary.
    /// - Throws: ``LocksmithError/decode`` if the value is not an archive of a dictionary.
    public static func data(inValue value: Data) throws -> [String: Any] {
        try KeyedArchiveReader.read(value)
    }
}

/// The item of an account.
private struct UserAccount: GenericPasswordSecureStorable, CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable {
    let account: String
    let service: String
    var data: [String: Any] = [:]
}
