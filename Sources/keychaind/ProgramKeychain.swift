// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainIPC
internal import KeychainPeers

/// The keychain of a user, and what a person has let programs read in it.
struct UsedKeychain: Sendable {
    let keychain: LocalKeychain
    /// Nil if nothing can be granted.
    var grants: UserGrants?
    /// Nil if nothing verifies fingers.
    var biometry: (any BiometryVerifier)?
}

/// The use of a keychain by a connection, from the first call that needs it until the connection has ended.
final class KeychainUse {
    private let services: SharedServices
    private let userID: UInt32
    private let storeID: StoreID?
    private var used: UsedKeychain?

    init(_ services: SharedServices, userID: UInt32, storeID: StoreID?) {
        self.services = services
        self.userID = userID
        self.storeID = storeID
    }

    func begin() throws(KeychainFailure) -> UsedKeychain {
        if let used { return used }
        let begun = try services.beginUse(userID, storeID)
        used = begun
        return begun
    }

    deinit {
        guard used != nil else { return }
        used = nil
        services.endUse(userID)
    }
}

/// Who a program is, and what that entitles it to.
struct IdentifiedProgram: Sendable {
    let identity: PeerIdentity
    let entitlements: Entitlements
    /// What root has registered, for this program and for others.
    var registrations = ProgramRegistrations()

    /// Whether the program finds the items of an access group, if it declares the group.
    func mayFind(_ group: String) -> Bool {
        if entitlements.accessGroups.contains(where: group.hasSameBytes) { return true }
        return switch identity {
        case .anyProgram, .program, .systemService: registrations.isOpen(group)
        case .programGroup, .sandboxed: false
        }
    }
}

/// The keychain as the program of a connection may use it, and the calls about access to the items of other programs.
final class ProgramKeychain {
    private let use: KeychainUse
    private let program: IdentifiedProgram
    private let prompter: AgentPrompter?
    private let requester: String
    /// The groups that a person lets the program read until the connection ends.
    private var requestedGroups: [String] = []
    private var made: (keychain: LocalKeychain, grantsVersion: Int)?

    init(_ use: KeychainUse, _ program: IdentifiedProgram, _ prompter: AgentPrompter?, requester: String) {
        self.use = use
        self.program = program
        self.prompter = prompter
        self.requester = requester
    }

    /// Throws `.notAvailable` if the grants of the program cannot be read: the items that it may read would seem to be missing.
    func keychain() throws(KeychainFailure) -> LocalKeychain {
        let used = try use.begin()
        let version = used.grants?.version ?? 0
        if let made, made.grantsVersion == version { return made.keychain }
        let granted =
            if let name = program.identity.name, let grants = used.grants { try grants.all().groups(ofProgram: name) } else { [String]() }
        let keychain = used.keychain.with(
            entitlements: program.entitlements.reading(granted + requestedGroups), prompter: prompter, requester: requester,
            biometry: used.biometry)
        made = (keychain, version)
        return keychain
    }

    /// Performs a call about the access to the items of other programs; returns nil if it is another one.
    func perform(_ call: Call) throws(KeychainFailure) -> Reply? {
        switch call {
        case .requestAccess(let group):
            _ = try grants()
            try AccessGrant.requireGrantable(group)
            try keychain().requirePasscode(for: .readGroup(group))
            requestedGroups.append(group)
            made = nil
        case .grants: return .grants(try grants().all().all)
        case .grant(let program, let group):
            let grants = try grants()
            guard PeerIdentity(name: program) != nil else {
                throw KeychainFailure(
                    .parameter,
                    "'\(program)' is not the name of a program: it is program: and the real path of a file that is no interpreter, or begins with group:, unit:, flatpak:, or snap:"
                )
            }
            // Before the person is asked.
            var copy = try grants.all()
            try copy.add(try AccessGrant(program: program, group: group, grantedAtSeconds: 0))
            try keychain().requirePasscode(for: .grant(program: program, group: group))
            try grants.add(program: program, group: group)
        case .revoke(let program, let group): try grants().remove(program: program, group: group)
        case .survey: return .survey(try surveyed().survey().filtered(program.mayFind))
        case .places(let account, let services):
            return .places(try surveyed().places(ofAccount: account, services: services, where: program.mayFind))
        default: return nil
        }
        return .done
    }

    private func surveyed() throws(KeychainFailure) -> LocalKeychain {
        if case .sandboxed = program.identity {
            throw KeychainFailure(.missingEntitlement, "a program in a sandbox does not learn where other programs have items")
        }
        return try keychain()
    }

    private func grants() throws(KeychainFailure) -> UserGrants {
        if case .sandboxed = program.identity {
            throw KeychainFailure(
                .missingEntitlement, "a program in a sandbox asks for no access to the items of others, and grants nothing")
        }
        guard let grants = try use.begin().grants else { throw KeychainFailure(.notAvailable, "this service grants nothing") }
        return grants
    }
}
