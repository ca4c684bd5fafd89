// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// Keeps secrets that a person has to release: each time a value is read, somebody is asked to show that they are there.
///
/// Storing, looking and removing ask nobody. Where no passcode is set, nothing can be stored and nothing is there to be read; removing
/// the passcode removes the values. They never leave the device. On devices with a Secure Enclave it guards the values; elsewhere
/// they are encrypted with a key that only the passcode releases.
///
/// Instances can be used from any thread. A call that asks waits for the person, so none should be made on the main thread.
public final class SecureEnclaveValet: Hashable, CustomStringConvertible, Sendable {
    /// What a person must do before a value can be read.
    public let accessControl: SecureEnclaveAccessControl
    /// The identifier the valet was made with; without one, its access group without the prefix.
    public let identifier: Identifier

    let name: ValetName
    let keychain: SecureEnclaveKeychain

    init(name: ValetName, accessControl: SecureEnclaveAccessControl, sandbox: Sandbox) {
        self.name = name
        self.accessControl = accessControl
        identifier = name.identifier
        keychain = SecureEnclaveKeychain(name: name, sandbox: sandbox, accessControl: accessControl)
    }

    // MARK: Which one it is

    /// Whether two valets see the same values.
    ///
    /// - Parameters:
    ///   - lhs: A valet.
    ///   - rhs: Another valet.
    /// - Returns: True if what one stores the other reads.
    public static func == (lhs: SecureEnclaveValet, rhs: SecureEnclaveValet) -> Bool {
        lhs.keychain.values.sandbox == rhs.keychain.values.sandbox
    }

    /// Hashes what decides equality.
    ///
    /// - Parameter hasher: The hasher to feed.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(keychain.values.sandbox)
    }

    /// The identifier, the accessibility with the access control, and the sort of valet.
    ///
    /// It holds no key and no value.
    public var description: String { "\(identifier) \(SecureEnclaveProtection(accessControl)) (\(ValetKind.secureEnclave.label))" }

    // MARK: Values

    /// Whether values can be stored now, and read if the person agrees.
    ///
    /// An item that needs nobody is written and read for this, so nobody is asked. It is false while the device is locked, where no
    /// passcode is set, where the entitlements do not list the valet's access group, and where only a finger or a face will do and
    /// nothing is there to recognise one.
    ///
    /// - Returns: True if the keychain is accessible.
    public func canAccessKeychain() -> Bool {
        keychain.isAccessible()
    }

    /// Stores bytes under a key, and asks nobody.
    ///
    /// A value that was there is replaced without being read, at one stroke: at no moment is there none. On Apple platforms replacing
    /// takes two steps, since the keychain there asks for anything else; if the program is stopped between them, there is no value.
    ///
    /// - Parameters:
    ///   - object: The value. It must not be empty. There is no upper limit, but the keychain is made for small secrets.
    ///   - key: The key. It must not be empty.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/emptyValue``, ``KeychainError/missingEntitlement``, or
    ///   ``KeychainError/couldNotAccessKeychain``, also where no passcode is set. Nothing was stored, and the value that was there is
    ///   still there.
    public func setObject(_ object: Data, forKey key: String) throws(KeychainError) {
        try keychain.values.setObject(object, forKey: key)
    }

    /// Asks the person, and reads the bytes stored under a key.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: What the person is told the value is for; the empty text leaves the words to the keychain.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none, ``KeychainError/userCancelled`` if the person does not want to or
    ///   could not show to be the right one, ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement``, or
    ///   ``KeychainError/couldNotAccessKeychain`` if the keychain cannot tell, for example because there is nobody to ask.
    public func object(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> Data {
        try keychain.values.object(forKey: key, .once(userPrompt))
    }

    /// Asks the person in the keychain's own words, and reads the bytes stored under a key.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: The value.
    /// - Throws: As ``object(forKey:withPrompt:)``.
    public func object(forKey key: String) throws(KeychainError) -> Data {
        try keychain.values.object(forKey: key)
    }

    /// Whether there is a value under a key; nobody is asked.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: False only if the keychain could look, and there is none. A value is seen while the device is locked, too.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement`` or ``KeychainError/couldNotAccessKeychain``.
    public func containsObject(forKey key: String) throws(KeychainError) -> Bool {
        try keychain.values.containsObject(forKey: key)
    }

    /// Stores text under a key, as UTF-8, and asks nobody.
    ///
    /// - Parameters:
    ///   - string: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Throws: As ``setObject(_:forKey:)``.
    public func setString(_ string: String, forKey key: String) throws(KeychainError) {
        try keychain.values.setObject(Data(string.utf8), forKey: key)
    }

    /// Asks the person, and reads the text stored under a key.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: What the person is told the value is for; the empty text leaves the words to the keychain.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none or the stored bytes are not UTF-8; else as
    ///   ``object(forKey:withPrompt:)``.
    public func string(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> String {
        try keychain.values.string(forKey: key, .once(userPrompt))
    }

    /// Asks the person in the keychain's own words, and reads the text stored under a key.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: The value.
    /// - Throws: As ``string(forKey:withPrompt:)``.
    public func string(forKey key: String) throws(KeychainError) -> String {
        try keychain.values.string(forKey: key)
    }

    /// Removes the value under a key, and asks nobody.
    ///
    /// That there is none is no error.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Throws: ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement`` or ``KeychainError/couldNotAccessKeychain``. The
    ///   value is then still there.
    public func removeObject(forKey key: String) throws(KeychainError) {
        try keychain.values.removeObject(forKey: key)
    }

    /// Removes all values, or none if it fails, and asks nobody.
    ///
    /// That there are none is no error.
    ///
    /// - Throws: ``KeychainError/missingEntitlement`` or ``KeychainError/couldNotAccessKeychain``.
    public func removeAllObjects() throws(KeychainError) {
        try keychain.values.removeAllObjects()
    }
}

extension SecureEnclaveValet {
    /// A valet for this program.
    ///
    /// - Parameters:
    ///   - identifier: Names the values, see ``Identifier``.
    ///   - accessControl: What a person must do before a value can be read.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func valet(with identifier: Identifier, accessControl: SecureEnclaveAccessControl) -> SecureEnclaveValet {
        live(.identifier(identifier), accessControl)
    }

    /// A valet shared by all programs that have an access group.
    ///
    /// - Parameters:
    ///   - groupIdentifier: The access group; the program's entitlements must list it.
    ///   - identifier: Separates several valets of one group.
    ///   - accessControl: What a person must do before a value can be read.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func sharedGroupValet(
        with groupIdentifier: SharedGroupIdentifier, identifier: Identifier? = nil, accessControl: SecureEnclaveAccessControl
    ) -> SecureEnclaveValet {
        live(.sharedGroup(groupIdentifier, identifier), accessControl)
    }

    private static let instances = InstanceRegistry<InstanceKey, SecureEnclaveValet>()

    private static func live(_ name: ValetName, _ accessControl: SecureEnclaveAccessControl) -> SecureEnclaveValet {
        let sandbox = Sandbox(name: name, kind: .secureEnclave, protection: SecureEnclaveProtection(accessControl))
        return instances.instance(for: InstanceKey(sandbox, name)) {
            SecureEnclaveValet(name: name, accessControl: accessControl, sandbox: sandbox)
        }
    }
}

extension SecureEnclaveValet {
    /// Brings existing keychain items into this valet: all that match, or none.
    ///
    /// As ``Valet/migrateObjects(matching:removeOnCompletion:)``. Writing asks nobody. Should copies have to go again, the person is
    /// asked once: only so can it be seen that nobody has stored a newer value.
    ///
    /// - Parameters:
    ///   - query: Which items: `kSecClass`, which must be generic password, and any other attributes. It must not ask for
    ///     data or references, nor for one item only, nor name an access control. With an `LAContext` in it, the person is asked
    ///     once for items that have to be released, and else for each.
    ///   - removeOnCompletion: Whether the items are removed from where they were.
    /// - Throws: A ``MigrationError``, or a ``KeychainError``: ``KeychainError/itemNotFound`` if nothing matches. The
    ///   keychain is as it was before, but an item put back has new dates.
    public func migrateObjects(matching query: [String: AnyHashable], removeOnCompletion: Bool) throws {
        try keychain.migration(from: MigrationQuery(query)).run(removingOriginals: removeOnCompletion)
    }

    /// Brings the values of a valet that asks nobody into this one: all of them, or none.
    ///
    /// - Parameters:
    ///   - valet: Where the values are.
    ///   - removeOnCompletion: Whether they are removed from there.
    /// - Throws: As ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjects(from valet: Valet, removeOnCompletion: Bool) throws {
        try keychain.migration(from: MigrationQuery(valet.keychain.items)).run(removingOriginals: removeOnCompletion)
    }

    /// Brings the values of the single prompt valet with the same identifier, group and access control into this one.
    ///
    /// The person is asked once.
    ///
    /// - Parameter removeOnCompletion: Whether they are removed from there.
    /// - Throws: ``KeychainError/userCancelled`` if the person does not release the values; else as
    ///   ``migrateObjects(matching:removeOnCompletion:)``.
    public func migrateObjectsFromSinglePromptSecureEnclaveValet(removeOnCompletion: Bool) throws {
        let source = Sandbox(name: name, kind: .singlePrompt, protection: SecureEnclaveProtection(accessControl))
        try keychain.migration(from: MigrationQuery(source.items, .once(""))).run(removingOriginals: removeOnCompletion)
    }
}
