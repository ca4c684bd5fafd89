// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// A store of secrets in the keychain, each under a key.
///
/// The class methods create valets. They differ in where the values are available: to this program, to programs that share an access
/// group, or on other devices of the same person. The arguments also separate the values of one valet from those of all others.
///
/// Instances can be used from any thread. Each call reads from or writes to the disk.
public final class Valet: Hashable, CustomStringConvertible, SecretStore {
    /// The lock states in which the values can be read and written.
    public let accessibility: Accessibility
    /// The identifier that the valet was created with; without one, its access group without the prefix.
    public let identifier: Identifier

    let kind: ValetKind
    let name: ValetName
    let keychain: NamespaceKeychain

    init(name: ValetName, kind: ValetKind, accessibility: Accessibility, namespace: KeychainNamespace) {
        self.name = name
        self.kind = kind
        self.accessibility = accessibility
        identifier = name.identifier
        keychain = NamespaceKeychain(namespace: namespace)
    }

    /// Returns whether two valets contain the same values.
    ///
    /// - Parameters:
    ///   - lhs: A valet.
    ///   - rhs: Another valet.
    /// - Returns: True if each valet reads the values that the other stores.
    public static func == (lhs: Valet, rhs: Valet) -> Bool {
        lhs.keychain.namespace == rhs.keychain.namespace
    }

    /// Hashes the properties that determine equality.
    ///
    /// - Parameter hasher: The hasher to use.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(keychain.namespace)
    }

    /// The identifier, the accessibility, and the kind of valet.
    ///
    /// Contains no key and no value.
    public var description: String { "\(identifier) \(accessibility) (\(kind.label))" }

    // MARK: Values

    /// Returns whether values can be stored and read now.
    ///
    /// Writes and reads an item of its own to find out. Returns false while the device is locked, for
    /// ``Accessibility/whenPasscodeSetThisDeviceOnly`` if no passcode is set, and if the entitlements do not list the valet's access
    /// group. Never prompts the user.
    ///
    /// - Returns: True if the keychain is accessible.
    public func canAccessKeychain() -> Bool {
        keychain.isAccessible()
    }

    /// Stores bytes under a key.
    ///
    /// Replaces an existing value atomically; readers see either the old or the new value.
    ///
    /// - Parameters:
    ///   - object: The value. It must not be empty. Its size is not limited, but the keychain is designed for small secrets.
    ///   - key: The key. It must not be empty.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/emptyValue``, ``KeychainError/missingEntitlement``,
    ///   ``KeychainError/userCancelled`` or ``KeychainError/couldNotAccessKeychain``. The previous value is then still stored, except
    ///   after a disk error while the change was flushed: then the outcome is unknown, and the program should read the value again.
    public func setObject(_ object: Data, forKey key: String) throws(KeychainError) {
        try keychain.setObject(object, forKey: key)
    }

    /// Stores bytes under a key that has no value yet.
    ///
    /// - Parameters:
    ///   - object: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Returns: False if there is a value already, which remains.
    /// - Throws: The errors of ``setObject(_:forKey:)``.
    public func addObject(_ object: Data, forKey key: String) throws(KeychainError) -> Bool {
        try keychain.addObject(object, forKey: key)
    }

    /// Reads the bytes stored under a key.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none, ``KeychainError/emptyKey``,
    ///   ``KeychainError/missingEntitlement``, ``KeychainError/userCancelled``, or
    ///   ``KeychainError/couldNotAccessKeychain`` if the lookup could not be performed, for example because the keychain is locked.
    public func object(forKey key: String) throws(KeychainError) -> Data {
        try keychain.object(forKey: key)
    }

    /// Reads the bytes stored under a key.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: Not used: this valet never prompts the user.
    /// - Returns: The value.
    /// - Throws: The errors of ``object(forKey:)``.
    public func object(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> Data {
        try keychain.object(forKey: key)
    }

    /// Reads the bytes stored under a key, and stores what a closure makes of them, atomically across threads and processes.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: Not used: this valet never prompts the user.
    ///   - change: A closure that receives the value, nil if there is none, and can change it; nil removes it. It runs again if another
    ///     thread or process has changed the value meanwhile, so only its last run counts, and it must not have other effects.
    /// - Throws: The errors of ``object(forKey:)`` except ``KeychainError/itemNotFound``, and of ``setObject(_:forKey:)``.
    public func modifyObject(forKey key: String, withPrompt userPrompt: String, _ change: (inout Data?) -> Void) throws(KeychainError) {
        try keychain.modifyObject(forKey: key, .unspecified, change)
    }

    /// The store in which the asynchronous form notes which task renews a value.
    public var renewalStore: any SecretStore {
        Valet(
            name: name, kind: .local, accessibility: accessibility,
            namespace: keychain.namespace.renewals)
    }

    /// Returns whether there is a value under a key.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: True if there is a value; false if the lookup succeeded and found none.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement``, ``KeychainError/userCancelled`` or
    ///   ``KeychainError/couldNotAccessKeychain``.
    public func containsObject(forKey key: String) throws(KeychainError) -> Bool {
        try keychain.containsObject(forKey: key)
    }

    /// Stores text under a key, as UTF-8.
    ///
    /// Replaces an existing value atomically; readers see either the old or the new value.
    ///
    /// - Parameters:
    ///   - string: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Throws: The errors of ``setObject(_:forKey:)``.
    public func setString(_ string: String, forKey key: String) throws(KeychainError) {
        try keychain.setObject(Data(string.utf8), forKey: key)
    }

    /// Reads the text stored under a key.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none or the stored bytes are not UTF-8, and the errors of ``object(forKey:)``.
    public func string(forKey key: String) throws(KeychainError) -> String {
        try keychain.string(forKey: key)
    }

    /// Returns the keys of all values.
    ///
    /// - Returns: The keys; empty if there are none.
    /// - Throws: ``KeychainError/missingEntitlement``, ``KeychainError/userCancelled`` or
    ///   ``KeychainError/couldNotAccessKeychain``.
    public func allKeys() throws(KeychainError) -> Set<String> {
        try keychain.allKeys()
    }

    /// Returns all keys, for callers that compare keys byte by byte.
    ///
    /// A `Set` drops all but one of several keys that are canonically equivalent.
    package func keyList(isComplete: Bool = false) throws(KeychainError) -> KeyList {
        try keychain.keyList(isComplete: isComplete)
    }

    /// Returns all keys with their values, read at the same moment.
    ///
    /// Canonically equivalent keys are separate. Throws if one of the values cannot be read.
    package func allObjects() throws(ValetFailure) -> [(key: String, value: Data)] {
        try ValetFailure.translating { () throws(KeychainError) in try keychain.allObjects() }
    }

    /// Removes the value under a key.
    ///
    /// Does nothing if no value exists.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement``, ``KeychainError/userCancelled`` or
    ///   ``KeychainError/couldNotAccessKeychain``. The value is then still stored, except after a disk error while the change was
    ///   flushed: then the outcome is unknown.
    public func removeObject(forKey key: String) throws(KeychainError) {
        try keychain.removeObject(forKey: key)
    }

    /// Removes all values atomically.
    ///
    /// Does nothing if there are none.
    ///
    /// - Throws: ``KeychainError/missingEntitlement``, ``KeychainError/userCancelled`` or
    ///   ``KeychainError/couldNotAccessKeychain``. All values are then still stored, except after a disk error while the change was
    ///   flushed: then the outcome is unknown.
    public func removeAllObjects() throws(KeychainError) {
        try keychain.removeAllObjects()
    }
}

extension Valet {
    /// Returns a valet for this program on this device.
    ///
    /// - Parameters:
    ///   - identifier: The name of the valet; see ``Identifier``.
    ///   - accessibility: The lock states in which the values can be read and written.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func valet(with identifier: Identifier, accessibility: Accessibility) -> Valet {
        sharedInstance(.identifier(identifier), kind: .local, accessibility: accessibility)
    }

    /// Returns a valet whose values are synchronized with the user's other devices.
    ///
    /// Without iCloud Keychain, values are stored and read on this device only. On Linux, `valet sync` synchronizes them.
    ///
    /// - Parameters:
    ///   - identifier: The name of the valet; see ``Identifier``.
    ///   - accessibility: The lock states in which the values can be read and written.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func iCloudValet(with identifier: Identifier, accessibility: CloudAccessibility) -> Valet {
        sharedInstance(.identifier(identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    /// Returns a valet shared by all programs that have an access group.
    ///
    /// - Parameters:
    ///   - groupIdentifier: The access group; the program's entitlements must list it.
    ///   - identifier: A name that separates several valets of one group.
    ///   - accessibility: The lock states in which the values can be read and written.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func sharedGroupValet(
        with groupIdentifier: SharedGroupIdentifier, identifier: Identifier? = nil, accessibility: Accessibility
    ) -> Valet {
        sharedInstance(.sharedGroup(groupIdentifier, identifier), kind: .local, accessibility: accessibility)
    }

    /// Returns a valet shared by all programs that have an access group, and synchronized with the user's other devices.
    ///
    /// - Parameters:
    ///   - groupIdentifier: The access group; the program's entitlements must list it.
    ///   - identifier: A name that separates several valets of one group.
    ///   - accessibility: The lock states in which the values can be read and written.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func iCloudSharedGroupValet(
        with groupIdentifier: SharedGroupIdentifier, identifier: Identifier? = nil, accessibility: CloudAccessibility
    ) -> Valet {
        sharedInstance(.sharedGroup(groupIdentifier, identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    /// Returns a valet whose identifier is the service of its items, unchanged, for names that users see.
    ///
    /// The identifier must be unique: it alone separates the valet from other valets and programs. Two such valets that differ only in
    /// their accessibility do not see each other's values and cannot both have a value for the same key.
    /// ``migrateObjects(from:removeOnCompletion:)`` moves values from one to the other.
    ///
    /// - Parameters:
    ///   - identifier: The service.
    ///   - accessibility: The lock states in which the values can be read and written.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func valet(withExplicitlySet identifier: Identifier, accessibility: Accessibility) -> Valet {
        sharedInstance(.explicitIdentifier(identifier), kind: .local, accessibility: accessibility)
    }

    /// Returns an iCloud valet whose identifier is the service of its items, unchanged.
    ///
    /// See ``valet(withExplicitlySet:accessibility:)``.
    ///
    /// - Parameters:
    ///   - identifier: The service.
    ///   - accessibility: The lock states in which the values can be read and written.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func iCloudValet(withExplicitlySet identifier: Identifier, accessibility: CloudAccessibility) -> Valet {
        sharedInstance(.explicitIdentifier(identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    /// Returns a shared group valet whose group, without its prefix, is the service of its items, unchanged.
    ///
    /// See ``valet(withExplicitlySet:accessibility:)``.
    ///
    /// - Parameters:
    ///   - identifier: The access group; the program's entitlements must list it.
    ///   - accessibility: The lock states in which the values can be read and written.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func sharedGroupValet(
        withExplicitlySet identifier: SharedGroupIdentifier, accessibility: Accessibility
    ) -> Valet {
        sharedInstance(.explicitSharedGroup(identifier), kind: .local, accessibility: accessibility)
    }

    /// Returns an iCloud shared group valet whose group, without its prefix, is the service of its items, unchanged.
    ///
    /// See ``valet(withExplicitlySet:accessibility:)``.
    ///
    /// - Parameters:
    ///   - identifier: The access group; the program's entitlements must list it.
    ///   - accessibility: The lock states in which the values can be read and written.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func iCloudSharedGroupValet(
        withExplicitlySet identifier: SharedGroupIdentifier, accessibility: CloudAccessibility
    ) -> Valet {
        sharedInstance(.explicitSharedGroup(identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    private static let instances = InstanceRegistry<InstanceKey, Valet>()

    private static func sharedInstance(_ name: ValetName, kind: ValetKind, accessibility: Accessibility) -> Valet {
        let namespace = KeychainNamespace(name: name, kind: kind, protection: accessibility)
        return instances.instance(for: InstanceKey(namespace, name)) {
            Valet(name: name, kind: kind, accessibility: accessibility, namespace: namespace)
        }
    }
}
