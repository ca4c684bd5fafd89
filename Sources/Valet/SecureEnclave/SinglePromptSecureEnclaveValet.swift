// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainServices

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

    let keychain: SecureEnclaveKeychain
    let singlePrompt = ReusableAuthentication()

    init(name: ValetName, accessControl: SecureEnclaveAccessControl, sandbox: Sandbox) {
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
    public var description: String { "\(identifier) \(SecureEnclaveProtection(accessControl)) (\(ValetKind.singlePrompt.label))" }

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

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet {
    /// A valet for this program.
    ///
    /// - Parameters:
    ///   - identifier: Names the values, see ``Identifier``.
    ///   - accessControl: What a person must do before a value can be read.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func valet(with identifier: Identifier, accessControl: SecureEnclaveAccessControl) -> SinglePromptSecureEnclaveValet {
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
    ) -> SinglePromptSecureEnclaveValet {
        live(.sharedGroup(groupIdentifier, identifier), accessControl)
    }

    private static let instances = InstanceRegistry<InstanceKey, SinglePromptSecureEnclaveValet>()

    private static func live(_ name: ValetName, _ accessControl: SecureEnclaveAccessControl) -> SinglePromptSecureEnclaveValet {
        let sandbox = Sandbox(name: name, kind: .singlePrompt, protection: SecureEnclaveProtection(accessControl))
        return instances.instance(for: InstanceKey(sandbox, name)) {
            SinglePromptSecureEnclaveValet(name: name, accessControl: accessControl, sandbox: sandbox)
        }
    }
}

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet {
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
}

/// One authentication that serves every call, until a new one is wanted.
///
/// `@unchecked Sendable`: `lock` guards what changes, and a context is used by one call after another.
@available(tvOS, unavailable)
@available(watchOS, unavailable)
final class ReusableAuthentication: @unchecked Sendable {
    /// A context, and the calls that have it.
    private final class Holder {
        let context = LAContext()
        /// Calls take turns: the ones that wait while the person answers the first need not ask any more, and each has its own words.
        let turn = NSLock()
        var callCount = 0
        var isRetired = false
    }

    private let lock = NSLock()
    private var current = Holder()

    /// Runs a call with the authentication at hand; it asks in these words if there is none.
    func perform<Result, Failure: Error>(
        _ prompt: String, _ body: (PromptOptions) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let holder = lock.withLock {
            current.callCount += 1
            return current
        }
        holder.turn.lock()
        defer {
            holder.turn.unlock()
            leave(holder)
        }
        if !prompt.isEmpty { holder.context.localizedReason = prompt }
        return try body(PromptOptions(entries: [kSecUseAuthenticationContext as String: holder.context]))
    }

    /// Makes the next call ask.
    ///
    /// One that has begun goes on with the authentication it has.
    func renew() {
        lock.withLock {
            current.isRetired = true
            if current.callCount == 0 { current.context.invalidate() }
            current = Holder()
        }
    }

    private func leave(_ holder: Holder) {
        lock.withLock {
            holder.callCount -= 1
            if holder.isRetired, holder.callCount == 0 { holder.context.invalidate() }
        }
    }
}
