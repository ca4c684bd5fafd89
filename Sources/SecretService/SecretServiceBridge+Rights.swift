// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore
internal import KeychainSystem

/// The rights of the programs on the bus.
///
/// Without `rights` every program may do everything, and no program is identified.
extension SecretServiceBridge {
    /// The program that has sent a call.
    private func caller(_ connection: String, _ rights: AccessRights) throws(BusError) -> Caller {
        try BusError.converting { () throws(KeychainFailure) in
            try rights.caller(connection) { () throws(KeychainFailure) in try bus.process(of: connection) }
        }
    }

    private func decision(
        _ rights: AccessRights, _ caller: Caller, _ collection: Collection, _ number: UInt64
    ) throws(BusError) -> AccessRights.Decision {
        try BusError.converting { () throws(KeychainFailure) in try rights.decision(caller, try collection.owner(of: number)) }
    }

    // MARK: What a program sees

    /// Returns the items that a program sees in the order of their ranks; all of them if `lookup` is nil.
    func visible(
        _ numbers: [UInt64], in collection: Collection, to connection: String, searching lookup: ItemLookup? = nil
    ) throws(BusError) -> [(number: UInt64, rank: AccessRights.SearchRank)] {
        // A signal has no receiver, and no values.
        guard let rights, !connection.isEmpty else { return numbers.map { ($0, .own) } }
        let caller = try caller(connection, rights)
        return try BusError.converting { () throws(KeychainFailure) in
            var ranks: [ItemOwner: AccessRights.SearchRank?] = [:]
            var found: [AccessRights.SearchRank: [UInt64]] = [:]
            for number in numbers {
                let owner = try collection.owner(of: number)
                if ranks[owner] == nil { ranks[owner] = .some(try rights.rank(of: owner, for: caller, searching: lookup)) }
                guard case .some(.some(let rank)) = ranks[owner] else { continue }
                guard rank != .foreign || rights.noteShown(.init(collection: collection.name, number: number), to: caller) else { continue }
                found[rank, default: []].append(number)
            }
            return AccessRights.SearchRank.allCases.flatMap { rank in (found[rank] ?? []).map { ($0, rank) } }
        }
    }

    /// Throws `.noObject` for an item that no search has shown the program.
    func requireVisible(_ number: UInt64, in collection: Collection, to connection: String) throws(BusError) {
        // A signal has no receiver, and no values.
        guard let rights, !connection.isEmpty else { return }
        let caller = try caller(connection, rights)
        if case .allowed = try decision(rights, caller, collection, number) { return }
        guard rights.isShown(.init(collection: collection.name, number: number), to: caller) else {
            throw .noObject(at: ObjectPath.item(collection: collection.name, number).text)
        }
    }

    /// The types of the properties whose values not all programs may know.
    private static let separateTypes = ["Attributes": "a{ss}", "Items": "ao", "Label": "s", "Modified": "t", "Type": "s"]

    /// Announces a change to each connection that may know the value; returns false for one that all may know.
    ///
    /// A value, not only that there is another one: libsecret takes a property without a value for one that is missing.
    func announceSeparately(_ change: PropertyChange) -> Bool {
        guard let rights, let type = Self.separateTypes[change.property],
            change.interface == Interface.item || change.property == "Items", let object = try? object(at: change.path.text)
        else { return false }
        for connection in rights.connections {
            bus.emitChange(of: change.property, at: change.path, change.interface, type: type, to: connection) { message throws(BusError) in
                try appendProperty(change.property, of: object, to: message)
            }
        }
        return true
    }

    // MARK: What a program may do

    /// Throws `.isForeign` for an item that the program may not use, without asking a person.
    func requireMayUse(_ number: UInt64, in collection: Collection, _ connection: String) throws(BusError) {
        guard let rights else { return }
        try requireVisible(number, in: collection, to: connection)
        if case .allowed = try decision(rights, try caller(connection, rights), collection, number) { return }
        throw .isForeign
    }

    /// Throws `.isForeign` unless the program may use all items of a collection.
    func requireMayUseAll(in collection: Collection, _ connection: String) throws(BusError) {
        guard let rights else { return }
        let caller = try caller(connection, rights)
        let isAllowed = try BusError.converting { () throws(KeychainFailure) in
            for owner in Set(try collection.numbers().map { number throws(KeychainFailure) in try collection.owner(of: number) }) {
                guard case .allowed = try rights.decision(caller, owner) else { return false }
            }
            return true
        }
        guard isAllowed else { throw .isForeign }
    }

    /// The owner of an item that a program stores; nil if programs are not told apart.
    func owner(of lookup: ItemLookup, _ connection: String) throws(BusError) -> ItemOwner? {
        guard let rights else { return nil }
        return try caller(connection, rights).owner(of: lookup)
    }

    // MARK: Consent

    /// The items that a call uses.
    private func usedItems(_ message: BusMessage, _ object: ServedObject) throws(BusError) -> [(collection: Collection, number: UInt64)] {
        switch object {
        case .item(let collection, let number): return [(collection, number)]
        case .service where message.member == "GetSecrets":
            var items: [(Collection, UInt64)] = []
            for path in try message.readPaths() {
                do throws(BusError) {
                    if case .item(let collection, let number) = try self.object(at: path) { items.append((collection, number)) }
                } catch {
                    guard error.isNoObject else { throw error }
                }
            }
            try message.rewind()
            return items
        case .service, .folder, .collection, .session, .prompt, .portal, .portalRequest: return []
        }
    }

    /// How long a call may wait for a person.
    enum Patience {
        case until(nanoseconds: UInt64)
        /// No person is asked.
        case none
    }

    /// Keeps a call whose reply waits for a person; returns false for one that can be performed.
    ///
    /// Throws `.isForeign` for an item of another program if a person has refused, if none can be asked, and if none is to be asked. Of several
    /// secrets at a time a program gets those that it may read.
    func hold(_ message: BusMessage, on object: ServedObject, _ patience: Patience) throws(BusError) -> Bool {
        guard let rights else { return false }
        for (collection, number) in try usedItems(message, object) {
            do throws(BusError) {
                if try hold(message, collection, number, rights, patience) { return true }
            } catch {
                guard case .service = object, error == .isForeign || error.isNoObject else { throw error }
            }
        }
        return false
    }

    /// Keeps a call that uses an item; returns false if the program may use it.
    private func hold(
        _ message: BusMessage, _ collection: Collection, _ number: UInt64, _ rights: AccessRights, _ patience: Patience
    ) throws(BusError) -> Bool {
        // Then the call fails for the lock, and is repeated after it.
        if try isLocked(collection) { return false }
        try requireVisible(number, in: collection, to: message.sender)
        let caller = try caller(message.sender, rights)
        switch try decision(rights, caller, collection, number) {
        case .allowed: return false
        case .refused: throw .isForeign
        case .undecided:
            guard case .until(let endNanoseconds) = patience else { throw .isForeign }
            let question = try BusError.converting { () throws(KeychainFailure) in
                ConsentRequest(
                    caller: caller, owner: try collection.owner(of: number), label: try collection.storage.description(of: number).0.label)
            }
            try consents.hold(PendingCall(message), question, endNanoseconds: endNanoseconds)
            return true
        }
    }

    /// Performs the calls that have waited for a dialog.
    func continueCalls(afterDialog number: Int, isAllowed: Bool?) {
        guard let answered = consents.takeAnswered(number) else { return }
        if let isAllowed { rights?.note(isAllowed: isAllowed, answered.question.caller, answered.question.owner) }
        for call in answered.calls {
            // A call that the answer does not decide waits for a dialog of its own.
            let isUnanswered = isAllowed == nil && call.question.isSame(as: answered.question)
            performAgain(call, isUnanswered ? .none : .until(nanoseconds: call.endNanoseconds))
        }
        askNext()
    }

    /// Ends the calls that have waited long enough, and asks about the next one.
    func endExpiredCalls() {
        for call in consents.takeExpired() { performAgain(call, .none) }
        askNext()
    }

    private func askNext() { for call in consents.askNext() { performAgain(call, .none) } }

    private func performAgain(_ call: Consents<PendingCall>.HeldCall, _ patience: Patience) {
        call.message.perform { message throws(BusError) in
            guard try perform(message, patience) else { throw .noObject(at: message.path) }
        }
    }
}
#endif
