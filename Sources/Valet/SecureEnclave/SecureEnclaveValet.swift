// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// A store of secrets that requires the user to authenticate for each read.
///
/// Storing, checking, and removing values do not prompt the user. The valet requires a passcode: without one nothing can be stored, and
/// removing the passcode removes the values. Values never leave the device. On devices with a Secure Enclave, it protects the values;
/// elsewhere they are encrypted with a key that only the passcode releases.
///
/// Instances can be used from any thread. A call that prompts blocks until the user responds, so do not make it on the main thread.
public final class SecureEnclaveValet: Hashable, CustomStringConvertible, SecretStore {
    /// The authentication that reading a value requires.
    public let accessControl: SecureEnclaveAccessControl
    /// The identifier that the valet was created with; without one, its access group without the prefix.
    public let identifier: Identifier

    let name: ValetName
    let keychain: SecureEnclaveKeychain

    init(name: ValetName, accessControl: SecureEnclaveAccessControl, namespace: KeychainNamespace) {
        self.name = name
        self.accessControl = accessControl
        identifier = name.identifier
        keychain = SecureEnclaveKeychain(name: name, namespace: namespace)
    }

    // MARK: Identity

    /// Returns whether two valets contain the same values.
    ///
    /// - Parameters:
    ///   - lhs: A valet.
    ///   - rhs: Another valet.
    /// - Returns: True if each valet reads the values that the other stores.
    public static func == (lhs: SecureEnclaveValet, rhs: SecureEnclaveValet) -> Bool {
        lhs.keychain.values.namespace == rhs.keychain.values.namespace
    }

    /// Hashes the properties that determine equality.
    ///
    /// - Parameter hasher: The hasher to use.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(keychain.values.namespace)
    }

    /// The identifier, the accessibility with the access control, and the kind of valet.
    ///
    /// Contains no key and no value.
    public var description: String { "\(identifier) \(SecureEnclaveProtection(accessControl)) (\(ValetKind.secureEnclave.label))" }

    // MARK: Values

    /// Returns whether the keychain can be used now.
    ///
    /// Writes and reads an item without access control to find out, so it never prompts the user. Returns false while the device is
    /// locked, if no passcode is set, and if the entitlements do not list the valet's access group. Does not check whether the user can
    /// satisfy ``accessControl``: without biometric authentication, storing fails in a valet that requires it.
    ///
    /// - Returns: True if the keychain is accessible.
    public func canAccessKeychain() -> Bool {
        keychain.isAccessible()
    }

    /// Stores bytes under a key without prompting the user.
    ///
    /// Replaces an existing value atomically and without reading it. On Apple platforms, where an update would prompt the user, it removes
    /// the old value and then adds the new one: if the program ends between the two steps, there is no value.
    ///
    /// - Parameters:
    ///   - object: The value. It must not be empty. Its size is not limited, but the keychain is designed for small secrets.
    ///   - key: The key. It must not be empty.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/emptyValue``, ``KeychainError/missingEntitlement``, or
    ///   ``KeychainError/couldNotAccessKeychain``, also if no passcode is set. The previous value is then still stored, except after a
    ///   disk error while the change was flushed: then the outcome is unknown, and the program should read the value again.
    public func setObject(_ object: Data, forKey key: String) throws(KeychainError) {
        try keychain.values.setObject(object, forKey: key)
    }

    /// Stores bytes under a key that has no value yet, without prompting the user.
    ///
    /// - Parameters:
    ///   - object: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Returns: False if there is a value already, which remains.
    /// - Throws: The errors of ``setObject(_:forKey:)``.
    public func addObject(_ object: Data, forKey key: String) throws(KeychainError) -> Bool {
        try keychain.values.addObject(object, forKey: key)
    }

    /// Prompts the user and reads the bytes stored under a key.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that the prompt shows. If it is empty, the keychain chooses the text.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none, ``KeychainError/userCancelled`` if the user canceled or authentication
    ///   failed, ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement``, or ``KeychainError/couldNotAccessKeychain`` if the
    ///   lookup could not be performed, for example because no prompt can be shown.
    public func object(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> Data {
        try keychain.values.object(forKey: key, .once(userPrompt))
    }

    /// Prompts the user with the keychain's own text and reads the bytes stored under a key.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: The value.
    /// - Throws: The errors of ``object(forKey:withPrompt:)``.
    public func object(forKey key: String) throws(KeychainError) -> Data {
        try keychain.values.object(forKey: key)
    }

    /// Reads the bytes stored under a key, and stores what a closure makes of them, atomically across threads and processes.
    ///
    /// Prompts the user once.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that a prompt shows. If it is empty, the keychain chooses the text.
    ///   - change: A closure that receives the value, nil if there is none, and can change it; nil removes it. It runs again if another
    ///     thread or process has changed the value meanwhile, so only its last run counts, and it must not have other effects.
    /// - Throws: The errors of ``object(forKey:withPrompt:)`` except ``KeychainError/itemNotFound``, and of ``setObject(_:forKey:)``.
    public func modifyObject(forKey key: String, withPrompt userPrompt: String, _ change: (inout Data?) -> Void) throws(KeychainError) {
        try keychain.values.modifyObject(forKey: key, .once(userPrompt), change)
    }

    /// The store in which the asynchronous form notes which task renews a value.
    public var renewalStore: any SecretStore {
        Valet(
            name: name, kind: .local, accessibility: .whenPasscodeSetThisDeviceOnly,
            namespace: keychain.values.namespace.renewals)
    }

    /// Returns whether there is a value under a key, without prompting the user.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: True if there is a value, also while the device is locked; false if the lookup succeeded and found none.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement`` or ``KeychainError/couldNotAccessKeychain``.
    public func containsObject(forKey key: String) throws(KeychainError) -> Bool {
        try keychain.values.containsObject(forKey: key)
    }

    /// Stores text under a key, as UTF-8, without prompting the user.
    ///
    /// - Parameters:
    ///   - string: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Throws: The errors of ``setObject(_:forKey:)``.
    public func setString(_ string: String, forKey key: String) throws(KeychainError) {
        try keychain.values.setObject(Data(string.utf8), forKey: key)
    }

    /// Prompts the user and reads the text stored under a key.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that the prompt shows. If it is empty, the keychain chooses the text.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none or the stored bytes are not UTF-8, and the errors of
    ///   ``object(forKey:withPrompt:)``.
    public func string(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> String {
        try keychain.values.string(forKey: key, .once(userPrompt))
    }

    /// Prompts the user with the keychain's own text and reads the text stored under a key.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: The value.
    /// - Throws: The errors of ``string(forKey:withPrompt:)``.
    public func string(forKey key: String) throws(KeychainError) -> String {
        try keychain.values.string(forKey: key)
    }

    /// Removes the value under a key without prompting the user.
    ///
    /// Does nothing if no value exists.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement`` or ``KeychainError/couldNotAccessKeychain``. The
    ///   value is then still stored, except after a disk error while the change was flushed: then the outcome is unknown.
    public func removeObject(forKey key: String) throws(KeychainError) {
        try keychain.values.removeObject(forKey: key)
    }

    /// Removes all values atomically, without prompting the user.
    ///
    /// Does nothing if there are none.
    ///
    /// - Throws: ``KeychainError/missingEntitlement`` or ``KeychainError/couldNotAccessKeychain``. All values are then still stored, except
    ///   after a disk error while the change was flushed: then the outcome is unknown.
    public func removeAllObjects() throws(KeychainError) {
        try keychain.values.removeAllObjects()
    }
}

extension SecureEnclaveValet {
    /// Returns a valet for this program.
    ///
    /// - Parameters:
    ///   - identifier: The name of the valet; see ``Identifier``.
    ///   - accessControl: The authentication that reading a value requires.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func valet(with identifier: Identifier, accessControl: SecureEnclaveAccessControl) -> SecureEnclaveValet {
        sharedInstance(.identifier(identifier), accessControl)
    }

    /// Returns a valet shared by all programs that have an access group.
    ///
    /// - Parameters:
    ///   - groupIdentifier: The access group; the program's entitlements must list it.
    ///   - identifier: A name that separates several valets of one group.
    ///   - accessControl: The authentication that reading a value requires.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func sharedGroupValet(
        with groupIdentifier: SharedGroupIdentifier, identifier: Identifier? = nil, accessControl: SecureEnclaveAccessControl
    ) -> SecureEnclaveValet {
        sharedInstance(.sharedGroup(groupIdentifier, identifier), accessControl)
    }

    private static let instances = InstanceRegistry<InstanceKey, SecureEnclaveValet>()

    private static func sharedInstance(_ name: ValetName, _ accessControl: SecureEnclaveAccessControl) -> SecureEnclaveValet {
        let namespace = KeychainNamespace(name: name, kind: .secureEnclave, protection: SecureEnclaveProtection(accessControl))
        return instances.instance(for: InstanceKey(namespace, name)) {
            SecureEnclaveValet(name: name, accessControl: accessControl, namespace: namespace)
        }
    }
}

extension SecureEnclaveValet {
    /// Copies existing keychain items into this valet, all of them or none.
    ///
    /// See ``Valet/migrateObjects(matching:removeOnCompletion:)``. Writing does not prompt the user. Where
    /// the keychain has no transactions, as on Apple platforms, a rollback prompts once, because only an authenticated read shows whether
    /// another program has stored a newer value.
    ///
    /// - Parameters:
    ///   - query: The items to migrate: `kSecClass`, which must be `kSecClassGenericPassword`, and any other attributes. The query must not
    ///     request data or references, set a limit of one, or contain an access control. For items with access control the user is
    ///     prompted once, with the query's `LAContext` if it contains one.
    ///   - removeOnCompletion: Whether to remove the original items.
    /// - Throws: A ``MigrationError`` or a ``KeychainError``: ``KeychainError/itemNotFound`` if nothing matches,
    ///   ``KeychainError/couldNotAccessKeychain`` if an item cannot be read, for example because it is damaged. All changes are then
    ///   rolled back; on Apple platforms a restored item has new dates.
    public func migrateObjects(matching query: [String: AnyHashable], removeOnCompletion: Bool) throws {
        try keychain.migration(from: MigrationQuery(query)).run(removingOriginals: removeOnCompletion)
    }

    /// Copies the values of a valet without access control into this one, all of them or none.
    ///
    /// - Parameters:
    ///   - valet: The source.
    ///   - removeOnCompletion: Whether to remove the values from the source.
    /// - Throws: The errors of ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjects(from valet: Valet, removeOnCompletion: Bool) throws {
        try keychain.migration(from: MigrationQuery(valet.keychain.items)).run(removingOriginals: removeOnCompletion)
    }

    /// Copies the values of the single prompt valet with the same identifier, group, and access control into this one.
    ///
    /// The user is prompted once.
    ///
    /// - Parameter removeOnCompletion: Whether to remove the values from the source.
    /// - Throws: ``KeychainError/userCancelled`` if the user canceled or authentication failed, and the errors of
    ///   ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjectsFromSinglePromptSecureEnclaveValet(removeOnCompletion: Bool) throws {
        let source = KeychainNamespace(name: name, kind: .singlePrompt, protection: SecureEnclaveProtection(accessControl))
        try keychain.migration(from: MigrationQuery(source.items, .once(""))).run(removingOriginals: removeOnCompletion)
    }
}
