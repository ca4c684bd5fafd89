// SPDX-License-Identifier: Apache-2.0

/// What the kernel and the group database say about the process at the other end of a connection.
///
/// A fact that could not be found out is nil, and never raises the level of assurance.
package struct PeerFacts: Hashable, Sendable {
    /// The effective user.
    package var userID: UInt32
    /// The effective group: that of the program's file if the file is setgid.
    package var effectiveGroupID: UInt32
    /// The real group: that of the process which has started the program.
    package var realGroupID: UInt32?
    package var supplementaryGroupIDs: [UInt32]?
    /// The primary group of the user in the password database.
    package var primaryGroupID: UInt32?
    /// The entry of the effective group in the group database.
    package var effectiveGroup: Group?
    /// What keychain-peer knows about the program.
    package var program: ProgramFacts?
    /// The sandbox that the control group of the process tells of; it counts unless the program is known to
    /// be outside of one.
    package var controlGroupSandbox: Sandbox?
    /// The service of the system, such as `deploy.service`, in whose control group the process is: only root can put it there.
    package var systemService: String?

    /// An entry of the group database.
    package struct Group: Hashable, Sendable {
        package var name: String
        /// Whether users are members of it.
        package var hasMembers: Bool

        package init(name: String, hasMembers: Bool) {
            self.name = name
            self.hasMembers = hasMembers
        }
    }

    package init(
        userID: UInt32, effectiveGroupID: UInt32, realGroupID: UInt32? = nil, supplementaryGroupIDs: [UInt32]? = nil,
        primaryGroupID: UInt32? = nil, effectiveGroup: Group? = nil
    ) {
        self.userID = userID
        self.effectiveGroupID = effectiveGroupID
        self.realGroupID = realGroupID
        self.supplementaryGroupIDs = supplementaryGroupIDs
        self.primaryGroupID = primaryGroupID
        self.effectiveGroup = effectiveGroup
    }

    /// The lowest number that a group of a person can have: a person can take on such a group in a user namespace.
    ///
    /// Source: login.defs(5), GID_MIN; Debian Policy, section 9.2.2.
    private static let lowestGroupOfPeople: UInt32 = 1_000

    /// The name of the group that the program got from its file; nil if the user may have given it the group.
    ///
    /// The kernel gives the group of a setgid file to the process that executes it, and keeps other processes of the user from tracing that one
    /// and from loading code into it. It does not give the group to a program that is traced, or that runs in a user namespace. A group that the
    /// process has otherwise, because the user is a member, says nothing about the program. A program passes the group on to the programs that it
    /// executes, unless it gives it up before.
    package var programGroup: String? {
        guard let group = effectiveGroup, let realGroupID, let supplementaryGroupIDs, let primaryGroupID else { return nil }
        guard effectiveGroupID != 0, effectiveGroupID < Self.lowestGroupOfPeople, !group.hasMembers, realGroupID != effectiveGroupID,
            primaryGroupID != effectiveGroupID, !supplementaryGroupIDs.contains(effectiveGroupID)
        else { return nil }
        return group.name
    }
}

extension PeerFacts {
    /// Reads the service of the system from the bytes of /proc/PID/cgroup; nil if the process is in none, or in one of a snap.
    ///
    /// systemd puts a process below `system.slice`, in slices whose names begin with that of their parent, and in the unit; a service may have
    /// control groups of its own below. A user's own services are below `user.slice`. Source: cgroups(7); systemd.slice(5).
    package static func systemService(controlGroups bytes: [UInt8]) -> String? {
        var paths: [Substring] = []
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { return nil }
            // The unified hierarchy, in which no other user can put a process into a delegated control group.
            if fields[0] == "0", fields[1].isEmpty { paths.append(fields[2]) }
        }
        guard paths.count == 1, let path = paths.first, path.hasPrefix("/system.slice/") else { return nil }
        let unit = path.split(separator: "/").first { !$0.hasSuffix(".slice") }
        guard let unit, unit.hasSuffix(".service"), !unit.hasPrefix("snap."), unit.utf8.count <= 255, unit.utf8.allSatisfy(isOfUnitName)
        else { return nil }
        return String(unit)
    }

    /// Source: systemd.unit(5).
    private static func isOfUnitName(_ byte: UInt8) -> Bool {
        Sandbox.isAlphanumeric(byte) || ":-_.\\@".utf8.contains(byte)
    }
}
