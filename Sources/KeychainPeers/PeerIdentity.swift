// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The program at the other end of a connection, as far as it can be known.
package enum PeerIdentity: Hashable, Sendable {
    /// Some program of the user.
    case anyProgram
    /// A program in a sandbox.
    case sandboxed(Sandbox)
    /// The program at this path, whose file only root can change.
    case program(String)
    /// The program whose file has this group, and the permission to run with it.
    case programGroup(String)

    package init(_ facts: PeerFacts, registrations: ProgramRegistrations) {
        if let group = facts.programGroup, registrations.entitlements(ofGroup: group) != nil {
            self = .programGroup(group)
        } else if let sandbox = facts.program?.sandbox {
            self = .sandboxed(sandbox)
        } else if let path = try? facts.program?.verifiedPath() {
            self = .program(path)
        } else if facts.program?.isOutsideOfContainers != true, let sandbox = facts.controlGroupSandbox,
            // Without keychain-peer, a snap with classic confinement, which is no sandbox, and what it starts look the same.
            sandbox == .unnamed || facts.program != nil
        {
            self = .sandboxed(.unnamed)
        } else {
            self = .anyProgram
        }
    }

    /// Returns what the program is entitled to; `declared` is what it says about itself.
    ///
    /// A program in a sandbox has the group of its application and no other. A program without an identity gets the groups that it declares, which are
    /// the same for all such programs of the user, except those that belong to programs with an identity.
    package func entitlements(declared: Entitlements, registrations: ProgramRegistrations) -> Entitlements {
        switch self {
        case .programGroup(let name):
            if let registered = registrations.entitlements(ofGroup: name) { return registered }
            return Entitlements(applicationIdentifier: "", origin: "keychaind")
        case .sandboxed(let sandbox):
            return Entitlements(
                applicationIdentifier: "", keychainAccessGroups: sandbox.accessGroup.map { [$0] } ?? [],
                origin: "keychaind, which gives a program in a sandbox the group of its application")
        case .anyProgram, .program:
            let own = ownGroup
            let isAvailable = { (group: String) in
                own.map { $0.utf8.elementsEqual(group.utf8) } ?? false
                    || !group.isEmpty && !Self.isReserved(group) && !registrations.contains(group)
            }
            var groups = declared.accessGroups.filter(isAvailable)
            // After those that it declares: the default group stays that of the items that the program has stored before it was verified.
            if let own, !declared.isAppClip { groups.append(own) }
            return Entitlements(
                applicationIdentifier: isAvailable(declared.applicationIdentifier) ? declared.applicationIdentifier : "",
                keychainAccessGroups: groups, isAppClip: declared.isAppClip,
                origin: "the program's own entitlements; keychaind gives it no group of another program")
        }
    }

    /// The name of the program in grants: the access group that keychaind derives from its identity; nil without one.
    package var name: String? {
        switch self {
        case .anyProgram: nil
        case .sandboxed(let sandbox): sandbox.accessGroup
        case .program: ownGroup
        case .programGroup(let group): ProgramRegistrations.standardAccessGroup(ofGroup: group)
        }
    }

    /// Creates the identity with a name; nil if no program has it.
    package init?(name: String) {
        if name.hasPrefix(Self.programPrefix + "/") {
            self = .program(String(name.dropFirst(Self.programPrefix.count)))
        } else if name.hasPrefix(Self.groupPrefix), name.count > Self.groupPrefix.count {
            self = .programGroup(String(name.dropFirst(Self.groupPrefix.count)))
        } else if let sandbox = Sandbox(accessGroup: name) {
            self = .sandboxed(sandbox)
        } else {
            return nil
        }
    }

    /// The access group that only this program has; nil without one.
    private var ownGroup: String? { if case .program(let path) = self { Self.programPrefix + path } else { nil } }

    /// Throws if the program declares the group of a verified program, and is not that program as far as is known.
    ///
    /// Otherwise it would not find the items that it has there, and its new ones would be stored where all programs of the user find them.
    package func requireGroups(of declared: Entitlements, _ facts: PeerFacts) throws(KeychainFailure) {
        if case .programGroup = self { return }
        let own = ownGroup
        let foreign = declared.accessGroups.first {
            $0.utf8.starts(with: Self.programPrefix.utf8) && !$0.utf8.elementsEqual((own ?? "").utf8)
        }
        guard let foreign else { return }
        guard let program = facts.program else {
            throw KeychainFailure(
                .notAvailable,
                "the access group '\(foreign)' is that of a verified program, and keychain-peer does not answer, which verifies it"
            )
        }
        let reason: String
        do throws(ProgramFacts.Unverified) {
            reason = "it is \(try program.verifiedPath())"
        } catch {
            reason = error.description
        }
        throw KeychainFailure(
            .missingEntitlement, "the access group '\(foreign)' is that of one program, and this program is not known to be it: \(reason)")
    }

    private static let programPrefix = "program:"
    fileprivate static let groupPrefix = "group:"
    /// The beginnings of the names of groups that keychaind derives from an identity.
    package static let reservedPrefixes = [groupPrefix, programPrefix, "flatpak:", "snap:", "unit:", "user:"]

    /// Whether a group belongs to an identity, also to one that no program of this machine has.
    package static func isReserved(_ group: String) -> Bool { reservedPrefixes.contains { group.utf8.starts(with: $0.utf8) } }
}

/// What root has registered: the entitlements of the programs with a group of their own.
package struct ProgramRegistrations: Hashable, Sendable {
    private let registered: [String: Entitlements]
    private let groups: Set<[UInt8]>

    /// - Parameter registered: The entitlements by the name of the program's group.
    package init(_ registered: [String: Entitlements] = [:]) {
        self.registered = registered
        groups = registered.values.reduce(into: []) { groups, entitlements in
            for group in entitlements.accessGroups { groups.insert(Array(group.utf8)) }
        }
    }

    package func entitlements(ofGroup name: String) -> Entitlements? { registered[name] }

    /// Whether an access group belongs to a registered program.
    ///
    /// Compares bytes, as a keychain does.
    package func contains(_ accessGroup: String) -> Bool { groups.contains(Array(accessGroup.utf8)) }

    /// The access group of a program with a group of its own that registers none.
    package static func standardAccessGroup(ofGroup name: String) -> String { PeerIdentity.groupPrefix + name }
}
