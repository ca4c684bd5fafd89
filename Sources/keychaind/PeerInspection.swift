// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainPeers
internal import KeychainSystem
internal import Synchronization

extension PeerFacts {
    /// Asks the kernel and the group database about the process that has connected.
    ///
    /// Throws if the kernel does not name the process; every other fact may be missing.
    init(of socket: borrowing PacketSocket, realGroupID: UInt32) throws(Errno) {
        let peer = try socket.peer()
        self.init(
            userID: peer.userID, effectiveGroupID: peer.groupID, realGroupID: realGroupID,
            supplementaryGroupIDs: socket.peerSupplementaryGroups())
        do throws(Errno) {
            primaryGroupID = try UserDatabase.primaryGroup(ofUser: peer.userID)
            effectiveGroup = try UserDatabase.group(peer.groupID).map { Group(name: $0.name, hasMembers: $0.hasMembers) }
        } catch {
            // The facts stay unknown.
        }
    }
}

extension PeerFacts {
    /// Asks the kernel and keychain-peer about a process that is not the one that has connected.
    ///
    /// Throws `.missingEntitlement` for a process of another user, `.itemNotFound` if it has ended, or executes another program meanwhile, and
    /// `.notAvailable` without keychain-peer: a program that nothing is known of would seem to be one that cannot be told from others. A group of its own is not
    /// among the facts: the kernel does not say where the process got it.
    init(ofProcess process: Int32, ofUser user: UInt32, _ inspector: ProgramInspector?) throws(KeychainFailure) {
        // As long as the process has not ended, its number belongs to it.
        guard process > 0, let handle = try? ProcessHandle(ofProcess: process) else { throw Self.processHasEnded }
        let users = ProcessFile("/proc/\(process)/status").text.map { ProcessFile.fields("Uid:", in: $0) } ?? []
        let controlGroups = ProcessFile("/proc/\(process)/cgroup").bytes
        guard let inspection = inspector?.inspect(process: process) else {
            throw KeychainFailure(.notAvailable, "keychain-peer does not answer, which looks at the programs of processes", cause: .missing)
        }
        guard let program = inspection.confirmedFacts(), !handle.hasEnded else { throw Self.processHasEnded }
        // The real, the effective, the saved, and that of the file system.
        guard users.count == 4, users.allSatisfy({ $0 == "\(user)" }) else {
            throw KeychainFailure(.missingEntitlement, "the process \(process) is not one of user \(user)")
        }
        // The group of root is never one of a program.
        self.init(userID: user, effectiveGroupID: 0)
        self.program = program
        controlGroupSandbox = controlGroups.flatMap { Sandbox.byControlGroups($0) }
        systemService = controlGroups.flatMap { PeerFacts.systemService(controlGroups: $0) }
    }

    private static var processHasEnded: KeychainFailure {
        KeychainFailure(.itemNotFound, "the process has ended, or executes another program")
    }
}

/// Asks keychain-peer which program a process executes: only that process may look at the processes of all users.
struct ProgramInspector: Sendable {
    private let path: String

    /// - Parameter path: The socket of keychain-peer.
    init(socketAt path: String) {
        self.path = path
    }

    /// Asks about the process that has a number now.
    ///
    /// Returns nil if keychain-peer does not answer, for example because it is not installed.
    func inspect(process id: Int32) -> ProgramInspection? {
        let deadline = ProgramInspection.deadline
        do throws(Errno) {
            let socket = try InspectionSocket(connectingTo: path, until: deadline)
            try socket.send(try ProcessHandle(ofProcess: id))
            let answer = try socket.receive(byteCount: ProgramFacts.encodedByteCount, until: deadline)
            return ProgramFacts(decoding: answer).map { ProgramInspection(facts: $0, socket) }
        } catch {
            return nil
        }
    }
}

/// What is known about the program of a connection before the greeting.
///
/// The nonce of the greeting comes back from the process that has the number of the one that connected. If keychain-peer got the handle of the
/// process with that number before, and says after the greeting that the process of the handle still executes the same program, that program has
/// sent the nonce.
struct ProgramInspection {
    private let facts: ProgramFacts
    private let socket: InspectionSocket

    fileprivate init(facts: ProgramFacts, _ socket: InspectionSocket) {
        self.facts = facts
        self.socket = socket
    }

    /// Two questions take less than the shortest time for which a program waits: keychain-watch and a login wait for two seconds in all.
    fileprivate static var deadline: Deadline { .after(milliseconds: 500) }

    /// Returns the facts after the greeting; nil if the process has ended, or has executed another program.
    func confirmedFacts() -> ProgramFacts? {
        // A program without an identity needs no confirmation.
        guard (try? facts.verifiedPath()) != nil else { return facts }
        do throws(Errno) {
            try socket.send([ProgramFacts.confirmation])
            return try socket.receive(byteCount: 1, until: Self.deadline) == [1] ? facts : nil
        } catch {
            return nil
        }
    }
}

/// The directory in which root registers programs: those with a group of their own in a file each, named `GROUP.entitlements`, and those that are
/// known by their files in files with their paths.
final class RegistrationDirectory: Sendable {
    /// What a file or the directory was when it was read.
    private struct Version: Equatable {
        let identity: FileStatus.Identity
        let changeNanoseconds: Int64
    }

    private struct Known {
        var versions: [String: Version] = [:]
        var registrations = ProgramRegistrations()
    }

    private let path: String
    private let known = Mutex(Known())

    init(_ path: String) {
        self.path = path
    }

    /// Returns the present registrations; none if there is no directory.
    ///
    /// Throws `.notAvailable` if the directory or one of its files cannot be read, or does not belong to root. Then no program is served:
    /// without the file it is not known which groups are another program's.
    func registrations() throws(KeychainFailure) -> ProgramRegistrations {
        let versions = try presentVersions()
        if let registrations = known.withLock({ $0.versions == versions ? $0.registrations : nil }) { return registrations }
        var registered: [String: Entitlements] = [:]
        var byPath: [String: Entitlements] = [:]
        for file in versions.keys where file.hasSuffix(Self.suffix) {
            let group = String(file.dropFirst(path.count + 1).dropLast(Self.suffix.count))
            let (entitlements, paths) = try EntitlementsFile.registration(
                atPath: file, defaultIdentifier: ProgramRegistrations.standardAccessGroup(ofGroup: group))
            // With paths, the file is not about a group of the system.
            if paths.isEmpty { registered[group] = entitlements }
            for path in paths {
                if let other = byPath.updateValue(entitlements, forKey: path) {
                    throw KeychainFailure(
                        .missingEntitlement, "\(other.origin) and \(file) register the same program, \(path)", path: file,
                        subject: .entitlements, cause: .malformed)
                }
            }
        }
        let registrations = ProgramRegistrations(registered, byPath: byPath)
        // A file that was changed while it was read is read again by the next connection.
        if try presentVersions() == versions { known.withLock { $0 = Known(versions: versions, registrations: registrations) } }
        return registrations
    }

    private static let suffix = ".entitlements"

    private func presentVersions() throws(KeychainFailure) -> [String: Version] {
        do throws(Errno) {
            let directory = try FileStatus(of: path, followsLinks: true)
            guard directory.owner == 0, directory.permissions & 0o022 == 0 else { throw Errno.notPermitted }
            var versions = [path: Version(identity: directory.identity, changeNanoseconds: directory.changeNanoseconds)]
            // Editors keep hidden files beside those that they change.
            for name in try FileSystem.names(in: path) where name.hasSuffix(Self.suffix) && !name.hasPrefix(".") {
                versions["\(path)/\(name)"] = try version(of: "\(path)/\(name)")
            }
            return versions
        } catch .notFound where (try? FileStatus(of: path)) == nil {
            return [:]
        } catch {
            throw KeychainFailure(
                .notAvailable,
                error == .notPermitted
                    ? "the directory of entitlements \(path) does not belong to root, or others can change it"
                    : "the directory of entitlements \(path) cannot be read: \(error)", path: path, subject: .entitlements,
                cause: .system(errno: error.rawValue))
        }
    }

    private func version(of path: String) throws(Errno) -> Version {
        let status = try FileStatus(of: path, followsLinks: true)
        return Version(identity: status.identity, changeNanoseconds: status.changeNanoseconds)
    }
}
