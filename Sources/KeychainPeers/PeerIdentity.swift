// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The program at the other end of a connection, as far as it can be known.
package enum PeerIdentity: Hashable, Sendable {
    /// Some program of the user.
    case anyProgram
    /// The program whose file has this group, and the permission to run with it.
    case programGroup(String)

    package init(_ facts: PeerFacts, registrations: ProgramRegistrations) {
        if let group = facts.programGroup, registrations.entitlements(ofGroup: group) != nil {
            self = .programGroup(group)
        } else {
            self = .anyProgram
        }
    }

    /// Returns what the program is entitled to; `declared` is what it says about itself.
    ///
    /// A program without an identity gets the groups that it declares, which are the same for all such programs of the user, except those that
    /// belong to programs with an identity.
    package func entitlements(declared: Entitlements, registrations: ProgramRegistrations) -> Entitlements {
        switch self {
        case .programGroup(let name):
            if let registered = registrations.entitlements(ofGroup: name) { return registered }
            return Entitlements(applicationIdentifier: "", origin: "keychaind")
        case .anyProgram:
            let isFree = { (group: String) in !group.isEmpty && !Self.isReserved(group) && !registrations.contains(group) }
            return Entitlements(
                applicationIdentifier: isFree(declared.applicationIdentifier) ? declared.applicationIdentifier : "",
                keychainAccessGroups: declared.accessGroups.filter(isFree), isAppClip: declared.isAppClip,
                origin: "the program's own entitlements; keychaind gives it no group of another program")
        }
    }

    /// The beginnings of the names of groups that keychaind derives from an identity.
    package static let reservedPrefixes = ["group:", "program:", "flatpak:", "snap:", "unit:", "user:"]

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
    package static func standardAccessGroup(ofGroup name: String) -> String { "group:\(name)" }
}
