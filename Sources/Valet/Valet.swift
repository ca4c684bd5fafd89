// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// Keeps secrets in the keychain: values under keys.
///
/// A valet is made by one of the class methods, which differ in who can see the values: this program, programs that
/// share an access group, other devices of the same person. What it was made with also separates its values from those
/// of every other valet.
///
/// Instances can be used from any thread. Each call reads from or writes to disk.
public final class Valet: Hashable, CustomStringConvertible, Sendable {
    /// When the values can be read and written.
    public let accessibility: Accessibility
    /// The identifier the valet was made with; without one, its access group without the prefix.
    public let identifier: Identifier

    let kind: ValetKind
    let name: ValetName
    let keychain: NamespaceKeychain

    init(name: ValetName, kind: ValetKind, accessibility: Accessibility, sandbox: Sandbox) {
        self.name = name
        self.kind = kind
        self.accessibility = accessibility
        identifier = name.identifier
        keychain = NamespaceKeychain(sandbox: sandbox)
    }

    /// Whether two valets see the same values.
    ///
    /// - Parameters:
    ///   - lhs: A valet.
    ///   - rhs: Another valet.
    /// - Returns: True if what one stores the other reads.
    public static func == (lhs: Valet, rhs: Valet) -> Bool {
        lhs.keychain.sandbox == rhs.keychain.sandbox
    }

    /// Hashes what decides equality.
    ///
    /// - Parameter hasher: The hasher to feed.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(keychain.sandbox)
    }

    /// The identifier, the accessibility, and the sort of valet.
    ///
    /// It holds no key and no value.
    public var description: String { "\(identifier) \(accessibility) (\(kind.label))" }

    // MARK: Values

    /// Whether values can be stored and read now.
    ///
    /// An item of its own is written and read for this. While it answers true, valid values can be stored. It is false
    /// while the device is locked, for ``Accessibility/whenPasscodeSetThisDeviceOnly`` where no passcode is set, and
    /// where the entitlements do not list the valet's access group. The person is never asked.
    ///
    /// - Returns: True if the keychain is accessible.
    public func canAccessKeychain() -> Bool {
        keychain.isAccessible()
    }

    /// Stores bytes under a key.
    ///
    /// A value that was there is replaced at one stroke: at no moment is there none.
    ///
    /// - Parameters:
    ///   - object: The value. It must not be empty. There is no upper limit, but the keychain is made for small secrets.
    ///   - key: The key. It must not be empty.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/emptyValue``, ``KeychainError/missingEntitlement``,
    ///   ``KeychainError/userCancelled`` or ``KeychainError/couldNotAccessKeychain``. The value that was there is then still there.
    public func setObject(_ object: Data, forKey key: String) throws(KeychainError) {
        try keychain.setObject(object, forKey: key)
    }

    /// Reads the bytes stored under a key.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none, ``KeychainError/emptyKey``,
    ///   ``KeychainError/missingEntitlement``, ``KeychainError/userCancelled``, or
    ///   ``KeychainError/couldNotAccessKeychain`` if the keychain cannot tell, for example because it is locked.
    public func object(forKey key: String) throws(KeychainError) -> Data {
        try keychain.object(forKey: key)
    }

    /// Whether there is a value under a key.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: False only if the keychain could look, and there is none.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement``, ``KeychainError/userCancelled`` or
    ///   ``KeychainError/couldNotAccessKeychain``.
    public func containsObject(forKey key: String) throws(KeychainError) -> Bool {
        try keychain.containsObject(forKey: key)
    }

    /// Stores text under a key, as UTF-8.
    ///
    /// A value that was there is replaced at one stroke: at no moment is there none.
    ///
    /// - Parameters:
    ///   - string: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Throws: As ``setObject(_:forKey:)``.
    public func setString(_ string: String, forKey key: String) throws(KeychainError) {
        try keychain.setObject(Data(string.utf8), forKey: key)
    }

    /// Reads the text stored under a key.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none or the stored bytes are not UTF-8; else as ``object(forKey:)``.
    public func string(forKey key: String) throws(KeychainError) -> String {
        try keychain.string(forKey: key)
    }

    /// The keys of all values.
    ///
    /// - Returns: The keys; empty if there are none.
    /// - Throws: ``KeychainError/missingEntitlement``, ``KeychainError/userCancelled`` or
    ///   ``KeychainError/couldNotAccessKeychain``.
    public func allKeys() throws(KeychainError) -> Set<String> {
        try keychain.allKeys()
    }

    /// As `allKeys()`, for callers to whom only keys of the same bytes are the same.
    package func keyList() throws(KeychainError) -> [String] {
        try keychain.keyList()
    }

    /// Removes the value under a key.
    ///
    /// That there is none is no error.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement``, ``KeychainError/userCancelled`` or
    ///   ``KeychainError/couldNotAccessKeychain``. The value is then still there.
    public func removeObject(forKey key: String) throws(KeychainError) {
        try keychain.removeObject(forKey: key)
    }

    /// Removes all values, or none if it fails.
    ///
    /// That there are none is no error.
    ///
    /// - Throws: ``KeychainError/missingEntitlement``, ``KeychainError/userCancelled`` or
    ///   ``KeychainError/couldNotAccessKeychain``.
    public func removeAllObjects() throws(KeychainError) {
        try keychain.removeAllObjects()
    }
}

extension Valet {
    /// A valet for this program on this device.
    ///
    /// - Parameters:
    ///   - identifier: Names the values, see ``Identifier``.
    ///   - accessibility: When they can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func valet(with identifier: Identifier, accessibility: Accessibility) -> Valet {
        live(.identifier(identifier), kind: .local, accessibility: accessibility)
    }

    /// A valet whose values the other devices of the same person also have.
    ///
    /// Where there is no iCloud Keychain, values are stored and read on this device alone.
    ///
    /// - Parameters:
    ///   - identifier: Names the values, see ``Identifier``.
    ///   - accessibility: When they can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func iCloudValet(with identifier: Identifier, accessibility: CloudAccessibility) -> Valet {
        live(.identifier(identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    /// A valet shared by all programs that have an access group.
    ///
    /// - Parameters:
    ///   - groupIdentifier: The access group; the program's entitlements must list it.
    ///   - identifier: Separates several valets of one group.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func sharedGroupValet(
        with groupIdentifier: SharedGroupIdentifier, identifier: Identifier? = nil, accessibility: Accessibility
    ) -> Valet {
        live(.sharedGroup(groupIdentifier, identifier), kind: .local, accessibility: accessibility)
    }

    /// A valet shared by all programs that have an access group, whose values the other devices of the same person also have.
    ///
    /// - Parameters:
    ///   - groupIdentifier: The access group; the program's entitlements must list it.
    ///   - identifier: Separates several valets of one group.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func iCloudSharedGroupValet(
        with groupIdentifier: SharedGroupIdentifier, identifier: Identifier? = nil, accessibility: CloudAccessibility
    ) -> Valet {
        live(.sharedGroup(groupIdentifier, identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    /// A valet whose identifier is the service of its items, word for word: for names that people are shown.
    ///
    /// Nothing then keeps it apart from other valets and programs with the same identifier, so the identifier must be
    /// unique. Two such valets that differ only in their accessibility do not see each other's values and cannot both
    /// have a value for one key; ``migrateObjects(from:removeOnCompletion:)`` moves values from one to the other.
    ///
    /// - Parameters:
    ///   - identifier: The service.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func valet(withExplicitlySet identifier: Identifier, accessibility: Accessibility) -> Valet {
        live(.explicitIdentifier(identifier), kind: .local, accessibility: accessibility)
    }

    /// An iCloud valet whose identifier is the service of its items, word for word.
    ///
    /// See ``valet(withExplicitlySet:accessibility:)``.
    ///
    /// - Parameters:
    ///   - identifier: The service.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func iCloudValet(withExplicitlySet identifier: Identifier, accessibility: CloudAccessibility) -> Valet {
        live(.explicitIdentifier(identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    /// A shared group valet whose group, without its prefix, is the service of its items, word for word.
    ///
    /// See ``valet(withExplicitlySet:accessibility:)``.
    ///
    /// - Parameters:
    ///   - identifier: The access group; the program's entitlements must list it.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func sharedGroupValet(
        withExplicitlySet identifier: SharedGroupIdentifier, accessibility: Accessibility
    ) -> Valet {
        live(.explicitSharedGroup(identifier), kind: .local, accessibility: accessibility)
    }

    /// An iCloud shared group valet whose group, without its prefix, is the service of its items, word for word.
    ///
    /// See ``valet(withExplicitlySet:accessibility:)``.
    ///
    /// - Parameters:
    ///   - identifier: The access group; the program's entitlements must list it.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func iCloudSharedGroupValet(
        withExplicitlySet identifier: SharedGroupIdentifier, accessibility: CloudAccessibility
    ) -> Valet {
        live(.explicitSharedGroup(identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    private static let instances = InstanceRegistry<InstanceKey, Valet>()

    private static func live(_ name: ValetName, kind: ValetKind, accessibility: Accessibility) -> Valet {
        let sandbox = Sandbox(name: name, kind: kind, protection: accessibility)
        return instances.instance(for: InstanceKey(sandbox, name)) {
            Valet(name: name, kind: kind, accessibility: accessibility, sandbox: sandbox)
        }
    }
}
