// SPDX-License-Identifier: Apache-2.0
import CValet
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Testing
import Valet

/// Calls the functions of the header as C does, and returns results that tests can compare.
enum CStringCalls {
    static let nulTerminated = -1

    @safe static func text(
        _ read: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, UnsafeMutablePointer<Int>) -> valet_status
    ) -> (status: Int, text: String?) {
        var buffer: UnsafeMutablePointer<CChar>?
        var length = 0
        // The variables outlive the call. The buffer is freed below.
        let status = unsafe read(&buffer, &length)
        defer { unsafe valet_buffer_free(buffer) }
        guard let start = unsafe buffer else { return (Int(status), nil) }
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: length)
        return unsafe (Int(status), String(decoding: bytes, as: UTF8.self))
    }

    @safe static func bytes(
        _ read: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, UnsafeMutablePointer<Int>) -> valet_status
    ) -> (status: Int, bytes: Data?) {
        var buffer: UnsafeMutablePointer<UInt8>?
        var length = 0
        // As above.
        let status = unsafe read(&buffer, &length)
        defer { unsafe valet_buffer_free(buffer) }
        guard let start = unsafe buffer else { return (Int(status), nil) }
        return unsafe (Int(status), Data(bytes: start, count: length))
    }

    static func status(_ call: () -> valet_status) -> Int { Int(call()) }

    static func handle(_ make: (UnsafeMutablePointer<OpaquePointer?>) -> valet_status) throws -> OpaquePointer {
        var handle: OpaquePointer?
        // The variable outlives the call.
        let status = unsafe make(&handle)
        try #require(Int(status) == valet_success)
        return unsafe try #require(handle)
    }

    /// Collects the keys of a call.
    @safe static func keys(_ list: (valet_key_callback, UnsafeMutableRawPointer) -> valet_status) -> (status: Int, keys: [String]) {
        let collected = Collected()
        // The object outlives the call.
        let status = withExtendedLifetime(collected) {
            unsafe list(
                { context, key, length in
                    guard let context = unsafe context, let key = unsafe key else { return false }
                    let text = unsafe String(decoding: UnsafeRawBufferPointer(start: key, count: length), as: UTF8.self)
                    unsafe Unmanaged<Collected>.fromOpaque(context).takeUnretainedValue().keys.append(text)
                    return true
                }, Unmanaged.passUnretained(collected).toOpaque())
        }
        return (Int(status), collected.keys)
    }

    private final class Collected {
        var keys: [String] = []
    }
}

#if !canImport(Darwin)
/// Each pointer below is a Swift string or variable that outlives the call, or a handle that is not freed yet.
@Suite("C and Swift", .inMemoryKeychain(accessGroups: ["ID12345.Druidia", "group.Druidia"]))
struct ExchangeTests {
    private static let end = CStringCalls.nulTerminated

    /// The same valet, created in C and in Swift.
    @safe struct Twins: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let inC: @Sendable (UnsafeMutablePointer<OpaquePointer?>) -> valet_status
        let inSwift: @Sendable () throws -> Valet
    }

    private static let appID = valet_group_prefix(valet_group_prefix_app_id)
    private static let applicationGroup = valet_group_prefix(valet_group_prefix_application_group)
    private static let unlocked = valet_accessibility(valet_accessibility_when_unlocked)
    private static let cloud = valet_cloud_accessibility(valet_cloud_accessibility_after_first_unlock)

    private static func name() throws -> Identifier { try #require(Identifier(nonEmpty: "Druidia")) }
    private static func group() throws -> SharedGroupIdentifier {
        try #require(SharedGroupIdentifier(appIDPrefix: "ID12345", nonEmptyGroup: "Druidia"))
    }

    private static let twins: [Twins] = [
        unsafe Twins(testDescription: "standard") {
            unsafe valet_create("Druidia", end, unlocked, $0)
        } inSwift: {
            Valet.valet(with: try name(), accessibility: .whenUnlocked)
        },
        unsafe Twins(testDescription: "iCloud") {
            unsafe valet_create_icloud("Druidia", end, cloud, $0)
        } inSwift: {
            Valet.iCloudValet(with: try name(), accessibility: .afterFirstUnlock)
        },
        unsafe Twins(testDescription: "explicit") {
            unsafe valet_create_explicit("Druidia", end, unlocked, $0)
        } inSwift: {
            Valet.valet(withExplicitlySet: try name(), accessibility: .whenUnlocked)
        },
        unsafe Twins(testDescription: "explicit iCloud") {
            unsafe valet_create_icloud_explicit("Druidia", end, cloud, $0)
        } inSwift: {
            Valet.iCloudValet(withExplicitlySet: try name(), accessibility: .afterFirstUnlock)
        },
        unsafe Twins(testDescription: "shared") {
            unsafe valet_create_shared(appID, "ID12345", end, "Druidia", end, "More", end, unlocked, $0)
        } inSwift: {
            Valet.sharedGroupValet(with: try group(), identifier: Identifier(nonEmpty: "More"), accessibility: .whenUnlocked)
        },
        unsafe Twins(testDescription: "shared, application group") {
            unsafe valet_create_shared(applicationGroup, "group", end, "Druidia", end, nil, 0, unlocked, $0)
        } inSwift: {
            let group = try #require(SharedGroupIdentifier(groupPrefix: "group", nonEmptyGroup: "Druidia"))
            return Valet.sharedGroupValet(with: group, accessibility: .whenUnlocked)
        },
        unsafe Twins(testDescription: "shared iCloud") {
            unsafe valet_create_icloud_shared(appID, "ID12345", end, "Druidia", end, nil, 0, cloud, $0)
        } inSwift: {
            Valet.iCloudSharedGroupValet(with: try group(), accessibility: .afterFirstUnlock)
        },
        unsafe Twins(testDescription: "explicit shared") {
            unsafe valet_create_explicit_shared(appID, "ID12345", end, "Druidia", end, unlocked, $0)
        } inSwift: {
            Valet.sharedGroupValet(withExplicitlySet: try group(), accessibility: .whenUnlocked)
        },
        unsafe Twins(testDescription: "explicit shared iCloud") {
            unsafe valet_create_icloud_explicit_shared(appID, "ID12345", end, "Druidia", end, cloud, $0)
        } inSwift: {
            Valet.iCloudSharedGroupValet(withExplicitlySet: try group(), accessibility: .afterFirstUnlock)
        },
    ]

    @Test("exchange values, for every kind of valet", arguments: twins)
    func exchange(_ twins: Twins) throws {
        let handle = try unsafe CStringCalls.handle(twins.inC)
        defer { unsafe valet_free(handle) }
        let valet = try twins.inSwift()
        #expect(CStringCalls.status { unsafe valet_set_string(handle, "from C", Self.end, "12345", Self.end) } == valet_success)
        #expect(try valet.string(forKey: "from C") == "12345")
        try valet.setObject(Data([0, 255, 0]), forKey: "from Swift")
        let read = CStringCalls.bytes { unsafe valet_get(handle, "from Swift", Self.end, $0, $1) }
        #expect(read == (valet_success, Data([0, 255, 0])))
        let listed = CStringCalls.keys { unsafe valet_all_keys(handle, $0, $1) }
        #expect(listed.status == valet_success)
        #expect(try listed.keys == valet.allKeys().sorted())
        #expect(CStringCalls.status { unsafe valet_remove_all(handle) } == valet_success)
        #expect(try valet.allKeys().isEmpty)
    }

    @Test("A locked keychain is not reported as 'not found'")
    func locked() throws {
        let keychain = try #require(InMemoryKeychain.current)
        try keychain.setPasscode("swordfish")
        let handle = try unsafe CStringCalls.handle { unsafe valet_create("Druidia", Self.end, Self.unlocked, $0) }
        defer { unsafe valet_free(handle) }
        #expect(CStringCalls.status { unsafe valet_set_string(handle, "Skroob", Self.end, "12345", Self.end) } == valet_success)
        try keychain.lock()
        let isAccessible = unsafe valet_can_access(handle)
        #expect(!isAccessible)
        let read = CStringCalls.text { unsafe valet_get_string(handle, "Skroob", Self.end, $0, $1) }
        #expect(read == (valet_error_could_not_access_keychain, nil))
    }

    @Test("A callback receives a key that another program stored as bytes with its type")
    func oddKeys() throws {
        for account in [Data([0, 255]), Data()] as [Data] {
            let item: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "Other", kSecAttrAccount as String: account,
                kSecValueData as String: Data("value of \(account.count)".utf8),
            ]
            #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
        }
        let handle = try unsafe CStringCalls.handle { unsafe valet_create("Druidia", Self.end, Self.unlocked, $0) }
        defer { unsafe valet_free(handle) }
        let status = unsafe "Other".withCString { service in
            unsafe "genp".withCString { genericPassword in
                unsafe "class".withCString { className in
                    unsafe "svce".withCString { serviceName in
                        let text = valet_value_type(valet_value_text)
                        let query = unsafe [
                            valet_query_entry(name: className, type: text, bytes: genericPassword, length: 4, number: 0, seconds: 0),
                            valet_query_entry(name: serviceName, type: text, bytes: service, length: 5, number: 0, seconds: 0),
                        ]
                        return unsafe valet_migrate_matching_with_map(
                            handle, query, 2,
                            { _, pair, output in
                                guard let pair = unsafe pair?.pointee else { return 1000 }
                                guard unsafe Int(pair.key_type) == valet_value_bytes else { return 1001 }
                                let key = unsafe "\(pair.key_length) bytes"
                                return unsafe valet_output_set(output, key, -1, pair.value, pair.value_length)
                            }, nil)
                    }
                }
            }
        }
        #expect(Int(status) == valet_success)
        let read = CStringCalls.text { unsafe valet_get_string(handle, "2 bytes", Self.end, $0, $1) }
        #expect(read.text == "value of 2")
    }

    @Test("A synchronizable item for this device only moves into a valet")
    func synchronizableForThisDeviceOnly() throws {
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "Other", kSecAttrAccount as String: "Skroob",
            kSecAttrSynchronizable as String: true, kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            kSecValueData as String: Data("12345".utf8),
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
        let handle = try unsafe CStringCalls.handle { unsafe valet_create("Druidia", Self.end, Self.unlocked, $0) }
        defer { unsafe valet_free(handle) }
        let status = unsafe "genp".withCString { genericPassword in
            unsafe "class".withCString { className in
                unsafe "sync".withCString { synchronizable in
                    let (text, boolean) = (valet_value_type(valet_value_text), valet_value_type(valet_value_boolean))
                    let query = unsafe [
                        valet_query_entry(name: className, type: text, bytes: genericPassword, length: 4, number: 0, seconds: 0),
                        valet_query_entry(name: synchronizable, type: boolean, bytes: nil, length: 0, number: 1, seconds: 0),
                    ]
                    return unsafe valet_migrate_matching(handle, query, 2, true)
                }
            }
        }
        #expect(Int(status) == valet_success)
        let read = CStringCalls.text { unsafe valet_get_string(handle, "Skroob", Self.end, $0, $1) }
        #expect(read.text == "12345")
    }
}
#endif

#if !canImport(Darwin)
/// Each pointer below is a Swift string or variable that outlives the call, or a handle that is not freed yet.
@Suite("Secure Enclave valets in C", .inMemoryKeychain)
struct EnclaveTests {
    private let end = CStringCalls.nulTerminated

    private func keychainWithPasscode() throws -> InMemoryKeychain {
        let keychain = try #require(InMemoryKeychain.current)
        try keychain.setPasscode("swordfish")
        return keychain
    }

    @Test("Storing shows no prompt, each read prompts with the given reason")
    func enclave() throws {
        let keychain = try keychainWithPasscode()
        let handle = try unsafe CStringCalls.handle {
            unsafe valet_enclave_create(#function, end, valet_access_control(valet_access_control_user_presence), $0)
        }
        defer { unsafe valet_enclave_free(handle) }
        let isAccessible = unsafe valet_enclave_can_access(handle)
        #expect(isAccessible)
        #expect(CStringCalls.status { unsafe valet_enclave_set_string(handle, "Skroob", end, "12345", end) } == valet_success)
        #expect(keychain.person.questions.isEmpty)
        keychain.person.answers(.correctPasscode, .correctPasscode, .cancel)
        var read = CStringCalls.text { unsafe valet_enclave_get_string_with_prompt(handle, "Skroob", end, "open", end, $0, $1) }
        #expect(read.text == "12345")
        let bytes = CStringCalls.bytes { unsafe valet_enclave_get(handle, "Skroob", end, $0, $1) }
        #expect(bytes.bytes == Data("12345".utf8))
        read = CStringCalls.text { unsafe valet_enclave_get_string(handle, "Skroob", end, $0, $1) }
        #expect(read == (valet_error_user_cancelled, nil))
        // The person has no answers left.
        let last = CStringCalls.bytes { unsafe valet_enclave_get_with_prompt(handle, "Skroob", end, "again", end, $0, $1) }
        #expect(last == (valet_error_could_not_access_keychain, nil))
        #expect(keychain.person.questions.count == 4)
        #expect(keychain.person.questions.first?.reason == "open")
    }

    @Test("A single-prompt valet prompts once, until a new prompt is required")
    func singlePrompt() throws {
        let keychain = try keychainWithPasscode()
        let handle = try unsafe CStringCalls.handle {
            unsafe valet_single_prompt_create(#function, end, valet_access_control(valet_access_control_device_passcode), $0)
        }
        defer { unsafe valet_single_prompt_free(handle) }
        #expect(CStringCalls.status { unsafe valet_single_prompt_set_string(handle, "Skroob", end, "12345", end) } == valet_success)
        keychain.person.answers(.correctPasscode)
        for reason in ["first", "second"] {
            let read = CStringCalls.text { unsafe valet_single_prompt_get_string_with_prompt(handle, "Skroob", end, reason, end, $0, $1) }
            #expect(read.text == "12345")
        }
        let listed = CStringCalls.keys { unsafe valet_single_prompt_all_keys(handle, "third", end, $0, $1) }
        #expect(listed == (valet_success, ["Skroob"]))
        #expect(CStringCalls.status { unsafe valet_single_prompt_require_prompt_on_next_access(handle) } == valet_success)
        let refused = CStringCalls.bytes { unsafe valet_single_prompt_get_with_prompt(handle, "Skroob", end, "fourth", end, $0, $1) }
        #expect(refused == (valet_error_could_not_access_keychain, nil))
        #expect(keychain.person.questions.map(\.reason) == ["first", "fourth"])
    }

    @Test("Values of a single-prompt valet migrate to the other kind with one prompt")
    func migration() throws {
        let keychain = try keychainWithPasscode()
        let source = try unsafe CStringCalls.handle {
            unsafe valet_single_prompt_create(#function, end, valet_access_control(valet_access_control_user_presence), $0)
        }
        defer { unsafe valet_single_prompt_free(source) }
        let destination = try unsafe CStringCalls.handle {
            unsafe valet_enclave_create(#function, end, valet_access_control(valet_access_control_user_presence), $0)
        }
        defer { unsafe valet_enclave_free(destination) }
        for key in ["a", "b"] {
            #expect(CStringCalls.status { unsafe valet_single_prompt_set_string(source, key, end, "value", end) } == valet_success)
        }
        keychain.person.answers(.cancel)
        #expect(CStringCalls.status { unsafe valet_enclave_migrate_from_single_prompt(destination, true) } == valet_error_user_cancelled)
        keychain.person.answers(.correctPasscode)
        #expect(CStringCalls.status { unsafe valet_enclave_migrate_from_single_prompt(destination, true) } == valet_success)
        #expect(keychain.person.questions.count == 2)
        var exists = false
        for key in ["a", "b"] {
            #expect(CStringCalls.status { unsafe valet_enclave_contains(destination, key, end, &exists) } == valet_success)
            #expect(exists)
            #expect(CStringCalls.status { unsafe valet_single_prompt_contains(source, key, end, &exists) } == valet_success)
            #expect(!exists)
        }
    }
}
#endif
