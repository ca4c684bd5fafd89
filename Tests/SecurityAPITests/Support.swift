// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Synchronization

@testable import SecurityAPI

/// The four functions, each called with the dictionary that selects the items.
enum Verb: CaseIterable {
    case add
    case copyMatching
    case update
    case delete

    /// Calls the verb with a keychain that accepts every call.
    ///
    /// Returns the status and the recorded request.
    func call(_ dictionary: [String: Any], changes: [String: Any] = [:]) -> (OSStatus, RecordingKeychain.Requests) {
        let keychain = RecordingKeychain()
        let status = CurrentKeychain.with(keychain) {
            switch self {
            case .add: SecItemAdd(dictionary, nil)
            case .copyMatching: SecItemCopyMatching(dictionary, nil)
            case .update: SecItemUpdate(dictionary, changes)
            case .delete: SecItemDelete(dictionary)
            }
        }
        return (status, keychain.requests)
    }

    /// Returns only the status.
    ///
    /// A rejected call never reaches the keychain; an accepted call reaches it once.
    func status(_ dictionary: [String: Any]) -> OSStatus {
        let (status, requests) = call(dictionary)
        let count = requests.added.count + requests.matched.count + requests.updated.count + requests.deleted.count
        return count == (status == errSecSuccess ? 1 : 0) ? status : errSecInternalComponent
    }
}

/// A dictionary for a generic password.
func genericPassword(_ others: [String: Any] = [:]) -> [String: Any] {
    others.merging([kSecClass: kSecClassGenericPassword]) { given, _ in given }
}

/// A dictionary for an internet password.
func internetPassword(_ others: [String: Any] = [:]) -> [String: Any] {
    others.merging([kSecClass: kSecClassInternetPassword]) { given, _ in given }
}

/// A wrapper that makes any value an argument of a test.
struct Unchecked: @unchecked Sendable {
    // Unchecked, because Any is not Sendable: the values are made for one test and only read.
    let any: Any
}

/// Calls the function under test, and throws its error.
func makeAccessControl(_ protection: CFString, _ flags: SecAccessControlCreateFlags) throws -> SecAccessControl {
    var error: Unmanaged<CFError>?
    // The error is returned retained, and read once.
    guard let object = unsafe SecAccessControlCreateWithFlags(kCFAllocatorDefault, protection, flags, &error) else {
        throw unsafe error?.takeRetainedValue() ?? NSError(domain: "none was given", code: 0)
    }
    guard unsafe error == nil else { throw NSError(domain: "an error beside an object", code: 0) }
    return object
}

/// The status of a failed call, or 0 for success.
func status(_ body: () throws -> Void) -> OSStatus {
    do {
        try body()
        return 0
    } catch let error as CFError where CFErrorGetDomain(error) == NSOSStatusErrorDomain {
        return OSStatus(CFErrorGetCode(error))
    } catch {
        return 1
    }
}

/// A stub keychain that records requests and returns fixed items.
final class RecordingKeychain: Keychain {
    private let items: [KeychainItem]
    private let recorded = Mutex(Requests())

    struct Requests {
        var added: [AddRequest] = []
        var matched: [MatchRequest] = []
        var updated: [UpdateRequest] = []
        var deleted: [DeleteRequest] = []

        var isEmpty: Bool { added.isEmpty && matched.isEmpty && updated.isEmpty && deleted.isEmpty }
    }

    init(items: [KeychainItem] = [.password()]) {
        self.items = items
    }

    var requests: Requests { recorded.withLock { $0 } }

    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        recorded.withLock { $0.added.append(request) }
        guard let item = items.first else { throw KeychainFailure(.duplicateItem, "there is one") }
        return item
    }

    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        recorded.withLock { $0.matched.append(request) }
        guard !items.isEmpty else { throw KeychainFailure(.itemNotFound, "there is none") }
        return Array(items.prefix(request.limit ?? items.count))
    }

    func update(_ request: UpdateRequest) throws(KeychainFailure) {
        recorded.withLock { $0.updated.append(request) }
    }

    func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        recorded.withLock { $0.deleted.append(request) }
    }
}

extension KeychainItem {
    /// A generic password as a keychain returns it.
    static func password(
        _ additional: KeyValuePairs<Attribute, AttributeValue> = [:], accessControl: AccessControl = AccessControl(.whenUnlocked),
        secret: Data? = Data("open sesame".utf8)
    ) -> KeychainItem {
        var attributes = ItemAttributes([
            .account: .string("Skroob"), .service: .string("luggage"), .accessGroup: .string("group"),
            .accessible: .string(accessControl.accessibility.rawValue), .synchronizable: .number(0), .tombstone: .number(0),
            .multiUser: .data(Data()), .creationDate: .date(1000), .modificationDate: .date(2000), .sha1: .data(Data(count: 20)),
        ])
        for (attribute, value) in additional { attributes[attribute] = value }
        return KeychainItem(
            reference: PersistentReference(itemClass: .genericPassword, id: ItemID(high: 1, low: 2)), attributes: attributes,
            accessControl: accessControl, secret: secret)
    }

    static let persistentReference = Data("genp".utf8) + Data([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2])
}

/// A stub keychain without prompts: it records the requested authentications and returns scripted answers.
final class RecordingAuthenticator: Keychain, KeychainAuthenticating {
    struct Request: Sendable {
        let constraint: AccessControl.Constraint
        let accessibility: ItemAccessibility?
        let authentication: Authentication
    }

    private struct State {
        var requests: [Request] = []
        var requiredConstraints: [AccessControl.Constraint] = []
    }

    private let state = Mutex(State())
    private let keychain = RecordingKeychain()
    /// The error that `requireCanAuthenticate` throws.
    private let obstacle: KeychainFailure?
    /// The closure that answers prompts in place of the user.
    private let answer: @Sendable (Request) -> KeychainFailure?
    private let biometry: BiometryStatus

    init(
        obstacle: KeychainFailure? = nil, biometry: BiometryStatus = BiometryStatus(),
        answer: @escaping @Sendable (Request) -> KeychainFailure? = { _ in nil }
    ) {
        self.obstacle = obstacle
        self.biometry = biometry
        self.answer = answer
    }

    convenience init(failing failure: KeychainFailure) {
        self.init { _ in failure }
    }

    var requests: [Request] { state.withLock { $0.requests } }
    var requiredConstraints: [AccessControl.Constraint] { state.withLock { $0.requiredConstraints } }
    var itemRequests: RecordingKeychain.Requests { keychain.requests }

    func requireCanAuthenticate(
        _ constraint: AccessControl.Constraint, in context: AuthenticationContext?
    ) throws(KeychainFailure) {
        state.withLock { $0.requiredConstraints.append(constraint) }
        if let obstacle { throw obstacle }
    }

    func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: ItemAccessibility?, _ authentication: Authentication
    ) throws(KeychainFailure) {
        let request = Request(constraint: constraint, accessibility: accessibility, authentication: authentication)
        state.withLock { $0.requests.append(request) }
        if let failure = answer(request) { throw failure }
    }

    func biometryStatus() throws(KeychainFailure) -> BiometryStatus { biometry }

    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem { try keychain.add(request) }
    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] { try keychain.copyMatching(request) }
    func update(_ request: UpdateRequest) throws(KeychainFailure) { try keychain.update(request) }
    func delete(_ request: DeleteRequest) throws(KeychainFailure) { try keychain.delete(request) }
}
