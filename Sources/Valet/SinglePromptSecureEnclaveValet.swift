// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// Keeps secrets that a person has to release once: the first time a value is read, somebody is asked to show that they are there.
///
/// They are asked again after ``requirePromptOnNextAccess()``, after the device was locked, and by every new instance. Storing,
/// looking and removing ask nobody. Where no passcode is set, nothing can be stored and nothing is there to be read; removing the
/// passcode removes the values. They never leave the device. On devices with a Secure Enclave it guards the values; elsewhere they are
/// encrypted with a key that only the passcode releases.
///
/// Instances can be used from any thread. A call that asks waits for the person, so none should be made on the main thread.
@available(tvOS, unavailable)
@available(watchOS, unavailable)
public final class SinglePromptSecureEnclaveValet: Hashable, CustomStringConvertible, Sendable {
    /// What a person must do before a value can be read.
    public let accessControl: SecureEnclaveAccessControl
    /// The identifier the valet was made with; without one, its access group without the prefix.
    public let identifier: Identifier

    let keychain: EnclaveKeychain
    let singlePrompt = SinglePrompt()

    init(name: SandboxName, accessControl: SecureEnclaveAccessControl, sandbox: Sandbox) {
        self.accessControl = accessControl
        identifier = name.identifier
        keychain = EnclaveKeychain(name: name, sandbox: sandbox, accessControl: accessControl)
    }

    // MARK: Which one it is

    /// Whether two valets see the same values.
    ///
    /// - Parameters:
    ///   - lhs: A valet.
    ///   - rhs: Another valet.
    /// - Returns: True if what one stores the other reads.
    public static func == (lhs: SinglePromptSecureEnclaveValet, rhs: SinglePromptSecureEnclaveValet) -> Bool {
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
    public var description: String { "\(identifier) \(EnclaveProtection(accessControl)) (\(ValetKind.singlePrompt.label))" }

    // MARK: Asking

    /// Makes the next call that reads ask the person again.
    ///
    /// A call that has begun goes on with the answer it has, or waits for.
    public func requirePromptOnNextAccess() {
        singlePrompt.renew()
    }

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

    /// Reads the bytes stored under a key, and asks the person unless that was done before.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: What the person is told the value is for; the empty text leaves the words to the keychain.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none, ``KeychainError/userCancelled`` if the person does not want to or
    ///   could not show to be the right one, ``KeychainError/emptyKey``, ``KeychainError/missingEntitlement``, or
    ///   ``KeychainError/couldNotAccessKeychain`` if the keychain cannot tell, for example because there is nobody to ask.
    public func object(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> Data {
        try singlePrompt.perform(userPrompt) { asking throws(KeychainError) in try keychain.values.object(forKey: key, asking) }
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

    /// Reads the text stored under a key, and asks the person unless that was done before.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: What the person is told the value is for; the empty text leaves the words to the keychain.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` if there is none or the stored bytes are not UTF-8; else as
    ///   ``object(forKey:withPrompt:)``.
    public func string(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> String {
        try singlePrompt.perform(userPrompt) { asking throws(KeychainError) in try keychain.values.string(forKey: key, asking) }
    }

    /// The keys of all values; asks the person unless that was done before.
    ///
    /// - Parameter userPrompt: What the person is told it is for; the empty text leaves the words to the keychain.
    /// - Returns: The keys; empty if there are none, and then nobody is asked.
    /// - Throws: ``KeychainError/userCancelled``, ``KeychainError/missingEntitlement`` or ``KeychainError/couldNotAccessKeychain``.
    public func allKeys(userPrompt: String) throws(KeychainError) -> Set<String> {
        try singlePrompt.perform(userPrompt) { asking throws(KeychainError) in try keychain.values.allKeys(asking) }
    }

    /// As `allKeys(userPrompt:)`, for callers to whom only keys of the same bytes are the same.
    package func keyList(userPrompt: String) throws(KeychainError) -> [String] {
        try singlePrompt.perform(userPrompt) { asking throws(KeychainError) in try keychain.values.keyList(asking) }
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
