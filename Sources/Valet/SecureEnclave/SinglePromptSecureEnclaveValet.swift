// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainServices

/// A store of secrets that requires the user to authenticate once, for the first read.
///
/// The user must authenticate again after ``requirePromptOnNextAccess()``, after the device was locked, and for each new instance.
/// Storing, checking, and removing values do not prompt the user. The valet requires a passcode: without one nothing can be stored, and
/// removing the passcode removes the values. Values never leave the device. On devices with a Secure Enclave, it protects the values;
/// elsewhere they are encrypted with a key that only the passcode releases.
///
/// Instances can be used from any thread. A call that prompts blocks until the user responds, so do not make it on the main thread.
@available(tvOS, unavailable)
@available(watchOS, unavailable)
public final class SinglePromptSecureEnclaveValet: Hashable, CustomStringConvertible, SecretStore {
    /// The authentication that reading a value requires.
    public let accessControl: SecureEnclaveAccessControl
    /// The identifier that the valet was created with; without one, its access group without the prefix.
    public let identifier: Identifier

    let keychain: SecureEnclaveKeychain
    let singlePrompt = ReusableAuthentication()

    init(name: ValetName, accessControl: SecureEnclaveAccessControl, namespace: KeychainNamespace) {
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
    public static func == (lhs: SinglePromptSecureEnclaveValet, rhs: SinglePromptSecureEnclaveValet) -> Bool {
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
    public var description: String { "\(identifier) \(SecureEnclaveProtection(accessControl)) (\(ValetKind.singlePrompt.label))" }

    // MARK: Prompting

    /// Makes the next call that reads prompt the user again.
    ///
    /// A call that has already begun continues with its authentication.
    public func requirePromptOnNextAccess() {
        singlePrompt.renew()
    }

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

    /// Reads the bytes stored under a key, after prompting the user if the valet has not been unlocked yet.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that the prompt shows. If it is empty, the keychain chooses the text.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none, ``KeychainError/userCancelled`` if the user canceled or authentication
    ///   failed, ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement``, or ``KeychainError/couldNotAccessKeychain`` if the
    ///   lookup could not be performed, for example because no prompt can be shown.
    public func object(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> Data {
        try singlePrompt.perform(userPrompt) { promptOptions throws(KeychainError) in try keychain.values.object(forKey: key, promptOptions)
        }
    }

    /// Reads the bytes stored under a key, and stores what a closure makes of them, atomically across threads and processes.
    ///
    /// Prompts the user if the valet has not been unlocked yet.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that a prompt shows. If it is empty, the keychain chooses the text.
    ///   - change: A closure that receives the value, nil if there is none, and can change it; nil removes it. It runs again if another
    ///     thread or process has changed the value meanwhile, so only its last run counts, and it must not have other effects.
    /// - Throws: The errors of ``object(forKey:withPrompt:)`` except ``KeychainError/itemNotFound``, and of ``setObject(_:forKey:)``.
    public func modifyObject(forKey key: String, withPrompt userPrompt: String, _ change: (inout Data?) -> Void) throws(KeychainError) {
        try singlePrompt.perform(userPrompt) { promptOptions throws(KeychainError) in
            try keychain.values.modifyObject(forKey: key, promptOptions, change)
        }
    }

    /// The store in which the asynchronous form notes which task renews a value.
    public var renewalStore: any SecretStore {
        Valet(
            name: .identifier(identifier), kind: .local, accessibility: .whenPasscodeSetThisDeviceOnly,
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

    /// Reads the text stored under a key, after prompting the user if the valet has not been unlocked yet.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that the prompt shows. If it is empty, the keychain chooses the text.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none or the stored bytes are not UTF-8, and the errors of
    ///   ``object(forKey:withPrompt:)``.
    public func string(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> String {
        try singlePrompt.perform(userPrompt) { promptOptions throws(KeychainError) in try keychain.values.string(forKey: key, promptOptions)
        }
    }

    /// Returns the keys of all values, after prompting the user if the valet has not been unlocked yet.
    ///
    /// - Parameter userPrompt: The reason that the prompt shows. If it is empty, the keychain chooses the text.
    /// - Returns: The keys. Without values it is empty, and the user is not prompted.
    /// - Throws: ``KeychainError/userCancelled``, ``KeychainError/missingEntitlement`` or ``KeychainError/couldNotAccessKeychain``.
    public func allKeys(userPrompt: String) throws(KeychainError) -> Set<String> {
        try singlePrompt.perform(userPrompt) { promptOptions throws(KeychainError) in try keychain.values.allKeys(promptOptions) }
    }

    /// Returns all keys, for callers that compare keys byte by byte.
    ///
    /// A `Set` drops all but one of several keys that are canonically equivalent.
    package func keyList(userPrompt: String, isComplete: Bool = false) throws(KeychainError) -> KeyList {
        try singlePrompt.perform(userPrompt) { promptOptions throws(KeychainError) in
            try keychain.values.keyList(promptOptions, isComplete: isComplete)
        }
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

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet {
    /// Returns a valet for this program.
    ///
    /// - Parameters:
    ///   - identifier: The name of the valet; see ``Identifier``.
    ///   - accessControl: The authentication that reading a value requires.
    /// - Returns: The valet. The same arguments return the same instance while a reference to it exists.
    public class func valet(with identifier: Identifier, accessControl: SecureEnclaveAccessControl) -> SinglePromptSecureEnclaveValet {
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
    ) -> SinglePromptSecureEnclaveValet {
        sharedInstance(.sharedGroup(groupIdentifier, identifier), accessControl)
    }

    private static let instances = InstanceRegistry<InstanceKey, SinglePromptSecureEnclaveValet>()

    private static func sharedInstance(_ name: ValetName, _ accessControl: SecureEnclaveAccessControl) -> SinglePromptSecureEnclaveValet {
        let namespace = KeychainNamespace(name: name, kind: .singlePrompt, protection: SecureEnclaveProtection(accessControl))
        return instances.instance(for: InstanceKey(namespace, name)) {
            SinglePromptSecureEnclaveValet(name: name, accessControl: accessControl, namespace: namespace)
        }
    }
}

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet {
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
}

/// One authentication that all calls share until `renew()`.
///
/// `@unchecked Sendable`: `lock` guards the variables, and only one call at a time uses a context.
@available(tvOS, unavailable)
@available(watchOS, unavailable)
final class ReusableAuthentication: @unchecked Sendable {
    /// A context and the number of calls that use it.
    private final class SharedContext {
        let context = LAContext()
        /// Serializes calls.
        ///
        /// A call that waited for the first prompt reuses its authentication.
        let callLock = NSLock()
        var callCount = 0
        var isRetired = false
    }

    private let lock = NSLock()
    private var current = SharedContext()

    /// Runs a call with the current authentication; the call prompts with this reason if there is none yet.
    func perform<Result, Failure: Error>(
        _ prompt: String, _ body: (PromptOptions) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // In a forked child another thread may have held the locks. Every call fails there.
        guard !isForkedChild else { return try body(.unspecified) }
        let shared = lock.withLock {
            current.callCount += 1
            return current
        }
        shared.callLock.lock()
        defer {
            shared.callLock.unlock()
            endCall(shared)
        }
        if !prompt.isEmpty { shared.context.localizedReason = prompt }
        return try body(PromptOptions(entries: [kSecUseAuthenticationContext as String: shared.context]))
    }

    /// Makes the next call prompt the user.
    ///
    /// A call that has already begun continues with its authentication.
    func renew() {
        guard !isForkedChild else { return }
        lock.withLock {
            current.isRetired = true
            if current.callCount == 0 { current.context.invalidate() }
            current = SharedContext()
        }
    }

    private func endCall(_ shared: SharedContext) {
        lock.withLock {
            shared.callCount -= 1
            if shared.isRetired, shared.callCount == 0 { shared.context.invalidate() }
        }
    }
}
