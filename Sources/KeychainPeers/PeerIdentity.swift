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
    /// A program without an identity of its own, in this service of the system.
    case systemService(String)
    /// The program whose file has this group, and the permission to run with it.
    case programGroup(String)

    package init(_ facts: PeerFacts, registrations: ProgramRegistrations) {
        if let group = facts.programGroup, registrations.entitlements(ofGroup: group) != nil {
            self = .programGroup(group)
        } else if let sandbox = facts.program?.sandbox {
            self = .sandboxed(sandbox)
        } else if let path = try? facts.program?.verifiedPath() {
            self = .program(path)
        } else if facts.controlGroupSandbox == nil, let service = facts.systemService {
            self = .systemService(service)
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
        case .anyProgram, .program, .systemService:
            let own = ownGroups(registrations)
            let isAvailable = { (group: String) in own.contains(where: group.hasSameBytes) || registrations.isOpen(group) }
            var groups = declared.accessGroups.filter(isAvailable)
            // After those that it declares: the default group stays that of the items that the program has stored before it was verified.
            if !declared.isAppClip { groups += own }
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
        case .program, .systemService: ownGroup
        case .programGroup(let group): ProgramRegistrations.standardAccessGroup(ofGroup: group)
        }
    }

    /// Creates the identity with a name; nil if no program has it.
    package init?(name: String) {
        if name.hasPrefix(Self.programPrefix + "/"), ProgramFacts.canIdentify(String(name.dropFirst(Self.programPrefix.count))) {
            self = .program(String(name.dropFirst(Self.programPrefix.count)))
        } else if name.hasPrefix(Self.groupPrefix), name.count > Self.groupPrefix.count {
            self = .programGroup(String(name.dropFirst(Self.groupPrefix.count)))
        } else if name.hasPrefix(Self.servicePrefix), name.hasSuffix(".service") {
            self = .systemService(String(name.dropFirst(Self.servicePrefix.count)))
        } else if let sandbox = Sandbox(accessGroup: name) {
            self = .sandboxed(sandbox)
        } else {
            return nil
        }
    }

    /// The access groups that the program has because its file or its service is known: those that root has registered for it, and that of its path
    /// or its service.
    private func ownGroups(_ registrations: ProgramRegistrations) -> [String] {
        var groups: [String] = []
        if case .program(let path) = self { groups = registrations.entitlements(ofProgramAt: path)?.accessGroups ?? [] }
        return groups + (ownGroup.map { [$0] } ?? [])
    }

    /// The access group that only programs of this path, or in this service, have; nil without one.
    private var ownGroup: String? {
        switch self {
        case .program(let path): Self.programPrefix + path
        case .systemService(let name): Self.servicePrefix + name
        case .anyProgram, .sandboxed, .programGroup: nil
        }
    }

    /// Throws if the program declares a group of verified programs, and is not one of these as far as is known.
    ///
    /// Otherwise it would not find the items that it has there, and its new ones would be stored where all programs of the user find them.
    package func requireGroups(
        of declared: Entitlements, _ facts: PeerFacts, registrations: ProgramRegistrations
    ) throws(KeychainFailure) {
        if case .programGroup = self { return }
        let own = ownGroups(registrations)
        let foreign = declared.accessGroups.first { group in
            ([Self.programPrefix, Self.servicePrefix].contains { group.utf8.starts(with: $0.utf8) }
                || registrations.containsForPaths(group))
                && !own.contains(where: group.hasSameBytes)
        }
        guard let foreign else { return }
        guard !foreign.hasPrefix(Self.servicePrefix) else {
            throw KeychainFailure(
                .missingEntitlement,
                "the access group '\(foreign)' is that of a service of the system, and this program has another identity, or runs elsewhere"
            )
        }
        guard let program = facts.program else {
            throw KeychainFailure(
                .notAvailable,
                "the access group '\(foreign)' is that of verified programs, and keychain-peer does not answer, which verifies them"
            )
        }
        let reason: String
        do throws(ProgramFacts.Unverified) {
            reason = "it is \(try program.verifiedPath())"
        } catch {
            reason = error.description
        }
        throw KeychainFailure(
            .missingEntitlement,
            "the access group '\(foreign)' is that of verified programs, and this program is not known to be one of these: \(reason)")
    }

    private static let programPrefix = "program:"
    private static let servicePrefix = "unit:"
    fileprivate static let groupPrefix = "group:"
    /// The beginnings of the names of groups that keychaind derives from an identity.
    package static let reservedPrefixes = [groupPrefix, programPrefix, "flatpak:", "snap:", servicePrefix, "user:"]

    /// Whether a group belongs to an identity, also to one that no program of this machine has.
    package static func isReserved(_ group: String) -> Bool { reservedPrefixes.contains { group.utf8.starts(with: $0.utf8) } }
}

/// What root has registered: the entitlements of programs with a group of their own, and of programs at certain paths.
package struct ProgramRegistrations: Hashable, Sendable {
    private let registered: [String: Entitlements]
    private let byPath: [String: Entitlements]
    private let groups: Set<[UInt8]>
    private let groupsOfPaths: Set<[UInt8]>

    /// - Parameters:
    ///   - registered: The entitlements by the name of the program's group.
    ///   - byPath: The entitlements by the path of the program's file.
    package init(_ registered: [String: Entitlements] = [:], byPath: [String: Entitlements] = [:]) {
        self.registered = registered
        self.byPath = byPath
        groupsOfPaths = Self.groups(of: byPath)
        groups = Self.groups(of: registered).union(groupsOfPaths)
    }

    private static func groups(of registered: [String: Entitlements]) -> Set<[UInt8]> {
        Set(registered.values.flatMap { entitlements in entitlements.accessGroups.map { Array($0.utf8) } })
    }

    package func entitlements(ofGroup name: String) -> Entitlements? { registered[name] }

    /// The entitlements of the program that is known by its file at a path.
    package func entitlements(ofProgramAt path: String) -> Entitlements? { byPath[path] }

    /// Whether an access group belongs to a registered program.
    ///
    /// Compares bytes, as a keychain does.
    package func contains(_ accessGroup: String) -> Bool { groups.contains(Array(accessGroup.utf8)) }

    /// Whether each program of the user that declares an access group has it: it belongs to no program with an identity.
    package func isOpen(_ accessGroup: String) -> Bool {
        !accessGroup.isEmpty && !PeerIdentity.isReserved(accessGroup) && !contains(accessGroup)
    }

    /// Whether an access group belongs to programs that are known by their files.
    package func containsForPaths(_ accessGroup: String) -> Bool { groupsOfPaths.contains(Array(accessGroup.utf8)) }

    /// The access group of a program with a group of its own that registers none.
    package static func standardAccessGroup(ofGroup name: String) -> String { PeerIdentity.groupPrefix + name }
}
