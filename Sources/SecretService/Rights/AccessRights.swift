// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
package import KeychainCore
internal import KeychainSystem

/// Tells programs on the bus apart.
package protocol ProgramIdentifying: AnyObject {
    /// Returns the name of the program that a process of the user executes; nil if nothing tells it from other programs.
    func identity(ofProcess process: Int32) throws(KeychainFailure) -> String?
}

/// Finds out whether the programs on the bus can be told apart, and are.
package protocol ProgramAccess {
    /// Nil if every program may use every item.
    func current() throws(KeychainFailure) -> SeparatedAccess?
}

/// How programs are kept apart.
package struct SeparatedAccess {
    package let mode: AccessMode
    package let identification: any ProgramIdentifying

    package init(_ mode: AccessMode, _ identification: any ProgramIdentifying) {
        self.mode = mode
        self.identification = identification
    }
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

    /// What a person allows a program without an identity counts for its connection.
    private enum Subject: Hashable {
        case program(ItemOwner)
        case connection(String)

        init(_ caller: Caller) { self = caller.identity.map { .program($0) } ?? .connection(caller.connection) }
    }

    let access: SeparatedAccess
    private let grants: GrantStorage
    private var callers: [String: Caller] = [:]
    private var granted: Set<ItemGrant>?
    private var allowed: [Subject: Set<ItemOwner>] = [:]
    /// By the name of the program.
    private var refused: [ItemOwner: Set<ItemOwner>] = [:]
    /// The items of others that a search has shown to a connection.
    private var shown: [String: Set<ShownItem>] = [:]

    struct ShownItem: Hashable {
        let collection: String
        let number: UInt64
    }

    /// The most items of others that are shown to a connection: more than a program looks for.
    private static let largestShownCount = 10_000

    init(_ access: SeparatedAccess, _ keychain: any Keychain) {
        self.access = access
        grants = GrantStorage(keychain)
    }

    private var mode: AccessMode { access.mode }

    // MARK: Programs

    /// Returns the program of a connection, whose process is asked for if it is not known yet.
    func caller(_ connection: String, process: () throws(KeychainFailure) -> Int32) throws(KeychainFailure) -> Caller {
        if let known = callers[connection] { return known }
        let process = try process()
        var program: String?
        do throws(KeychainFailure) {
            program = try access.identification.identity(ofProcess: process)
        } catch {
            // The process has ended, or is one of root: such a program cannot be told from others.
            guard error.status == .itemNotFound || error.status == .missingEntitlement else { throw error }
        }
        let title = ProcessFile("/proc/\(process)/comm").text?.split(separator: "\n").first.map(String.init) ?? ""
        let caller = Caller(connection: connection, process: process, title: title, program: program)
        callers[connection] = caller
        return caller
    }

    /// The connections whose programs are known.
    var connections: [String] { Array(callers.keys) }

    /// Forgets a connection that has left the bus.
    func removeAll(of connection: String) {
        callers[connection] = nil
        allowed[.connection(connection)] = nil
        shown[connection] = nil
    }

    // MARK: Decisions

    func decision(_ caller: Caller, _ owner: ItemOwner) throws(KeychainFailure) -> Decision {
        if caller.owns(owner) { return .allowed }
        guard mode == .ask else { return .refused }
        if allowed[Subject(caller)]?.contains(owner) == true { return .allowed }
        if try isGranted(caller, owner) { return .allowed }
        return refused[caller.identity ?? .everyProgram]?.contains(owner) == true ? .refused : .undecided
    }

    private func isGranted(_ caller: Caller, _ owner: ItemOwner) throws(KeychainFailure) -> Bool {
        guard let program = caller.identity else { return false }
        return try presentGrants().contains(ItemGrant(program: program, owner: owner))
    }

    private func presentGrants() throws(KeychainFailure) -> Set<ItemGrant> {
        if let granted { return granted }
        let present = Set(try grants.all())
        granted = present
        return present
    }

    /// Reads the grants again, because another process may have changed them.
    func forgetGrants() { granted = nil }

    /// What a search shows a program of the items of an owner; nil: nothing.
    ///
    /// One with an attribute that few items have shows foreign items too: only a program that sees an item can ask for it.
    func rank(of owner: ItemOwner, for caller: Caller, searching lookup: ItemLookup?) throws(KeychainFailure) -> SearchRank? {
        if owner == .everyProgram { return .everyProgram }
        if caller.owns(owner) { return .own }
        if case .allowed = try decision(caller, owner) { return .foreign }
        let isSpecific = lookup?.attributes.contains { !$0.name.hasSameBytes(as: ItemAttribute.schema) } ?? false
        return mode == .ask && (isSpecific || caller.listsAllItems) ? .foreign : nil
    }

    /// The order in which a search shows items: many programs take the first one, and must not get that of another program.
    enum SearchRank: Int, CaseIterable {
        case own, everyProgram, foreign
    }

    /// Notes that a search shows a program an item of another one; returns false if it shows too many.
    func noteShown(_ item: ShownItem, to caller: Caller) -> Bool {
        if shown[caller.connection]?.contains(item) == true { return true }
        guard shown[caller.connection]?.count ?? 0 < Self.largestShownCount else { return false }
        shown[caller.connection, default: []].insert(item)
        return true
    }

    func isShown(_ item: ShownItem, to caller: Caller) -> Bool {
        caller.listsAllItems && mode == .ask || shown[caller.connection]?.contains(item) == true
    }

    /// Notes what a person has decided.
    ///
    /// A grant that cannot be stored counts for the time that the process runs. A refusal counts for all programs that cannot be told apart, which
    /// would ask again otherwise.
    func note(isAllowed: Bool, _ caller: Caller, _ owner: ItemOwner) {
        guard isAllowed else {
            refused[caller.identity ?? .everyProgram, default: []].insert(owner)
            return
        }
        if let program = caller.identity, (try? grants.add(ItemGrant(program: program, owner: owner))) != nil {
            granted = nil
        } else {
            allowed[Subject(caller), default: []].insert(owner)
        }
    }
}
#endif
