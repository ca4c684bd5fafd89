// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
package import KeychainCore
internal import KeychainSystem

/// Tells programs on the bus apart.
package protocol ProgramIdentifying {
    /// Returns the name of the program that a process of the user executes; nil if nothing tells it from other programs.
    func identity(ofProcess process: Int32) throws(KeychainFailure) -> String?
}

/// How programs on the bus share their items.
package enum AccessMode: String, Sendable, CaseIterable {
    /// Every program may use every item, as with GNOME Keyring.
    case open
    /// A program may use the items of another one if a person agrees.
    case ask
    /// A program does not see the items of other ones.
    case closed

    package static let path = "/etc/keychain/secret-service-access"

    /// Reads the mode that root has chosen; `ask` without a file.
    ///
    /// Throws `.notAvailable` if the file cannot be read, has another content, or can be changed by others than root.
    package static func configured(_ path: String = path) throws(KeychainFailure) -> AccessMode {
        let text = try TrustedFile.contents(path, byteLimit: 64, owner: .root, subject: "the file with the access mode")
        guard let text else { return .ask }
        let word = String(decoding: text, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard word.count == 1, let mode = word.first.flatMap({ AccessMode(rawValue: String($0)) }) else {
            let modes = allCases.map(\.rawValue).joined(separator: ", ")
            throw KeychainFailure(.notAvailable, "\(path) must have one of the words \(modes)", path: path, cause: .malformed)
        }
        return mode
    }
}

/// Which programs on the bus may use which items.
///
/// Only the program that serves the bus has the items, so it decides. What a person has allowed a program with an identity is kept in the keychain;
/// everything else lasts as long as the connection of the program.
final class AccessRights {
    enum Decision {
        case allowed, refused
        /// A person has to be asked.
        case undecided
    }

    /// What is decided about a program without an identity counts for its connection.
    private enum Subject: Hashable {
        case program(ItemOwner)
        case connection(String)

        init(_ caller: Caller) { self = caller.program.map { .program(ItemOwner($0)) } ?? .connection(caller.connection) }
    }

    let mode: AccessMode
    private let grants: GrantStorage
    private let identification: any ProgramIdentifying
    private var callers: [String: Caller] = [:]
    private var granted: Set<ItemGrant>?
    private var allowed: [Subject: Set<ItemOwner>] = [:]
    private var refused: [Subject: Set<ItemOwner>] = [:]

    init(_ mode: AccessMode, _ keychain: any Keychain, _ identification: any ProgramIdentifying) {
        self.mode = mode
        grants = GrantStorage(keychain)
        self.identification = identification
    }

    // MARK: Programs

    /// Returns the program of a connection, whose process is asked for if it is not known yet.
    func caller(_ connection: String, process: () throws(KeychainFailure) -> Int32) throws(KeychainFailure) -> Caller {
        if let known = callers[connection] { return known }
        let process = try process()
        let caller = Caller(connection: connection, process: process, program: try identification.identity(ofProcess: process))
        callers[connection] = caller
        return caller
    }

    /// Forgets a connection that has left the bus.
    func removeAll(of connection: String) {
        callers[connection] = nil
        allowed[.connection(connection)] = nil
        refused[.connection(connection)] = nil
    }

    // MARK: Decisions

    func decision(_ caller: Caller, _ owner: ItemOwner) throws(KeychainFailure) -> Decision {
        let subject = Subject(caller)
        if caller.owns(owner) || allowed[subject]?.contains(owner) == true { return .allowed }
        if try isGranted(caller, owner) { return .allowed }
        return mode == .closed || refused[subject]?.contains(owner) == true ? .refused : .undecided
    }

    private func isGranted(_ caller: Caller, _ owner: ItemOwner) throws(KeychainFailure) -> Bool {
        guard let program = caller.program else { return false }
        return try presentGrants().contains(ItemGrant(program: ItemOwner(program), owner: owner))
    }

    private func presentGrants() throws(KeychainFailure) -> Set<ItemGrant> {
        if let granted { return granted }
        let present = Set(try grants.all())
        granted = present
        return present
    }

    /// Reads the grants again, because another process may have changed them.
    func forgetGrants() { granted = nil }

    /// Whether a search shows the program an item of the owner.
    ///
    /// One with an attribute that few items have shows foreign items too: only a program that sees an item can ask for it.
    func isVisible(_ owner: ItemOwner, to caller: Caller, searching lookup: ItemLookup?) throws(KeychainFailure) -> Visibility {
        if case .allowed = try decision(caller, owner) { return .own }
        let isSpecific = lookup?.attributes.contains { !$0.name.hasSameBytes(as: ItemAttribute.schema) } ?? false
        return mode == .ask && (isSpecific || caller.listsAllItems) ? .foreign : .hidden
    }

    enum Visibility: Int {
        case own, foreign, hidden
    }

    /// Notes what a person has decided.
    ///
    /// A grant that cannot be stored counts for the time that the process runs.
    func note(isAllowed: Bool, _ caller: Caller, _ owner: ItemOwner) {
        let subject = Subject(caller)
        guard isAllowed else {
            refused[subject, default: []].insert(owner)
            return
        }
        if let program = caller.program, (try? grants.add(ItemGrant(program: ItemOwner(program), owner: owner))) != nil {
            granted = nil
        } else {
            allowed[subject, default: []].insert(owner)
        }
    }
}
#endif
