// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
public import Foundation
internal import Keybag
internal import KeychainCore
internal import KeychainEngine
internal import Synchronization

/// What can go wrong with a keychain, for tests of what a program does then.
///
/// A locked keychain is no fault: see ``lock(includingAfterFirstUnlock:)``.
extension InMemoryKeychain {
    /// The calls that a fault concerns.
    public enum Calls: Hashable, Sendable {
        /// Those that look for items: `SecItemCopyMatching`.
        case reads
        /// Those that change something: `SecItemAdd`, `SecItemUpdate`, `SecItemDelete`, and what changes the passcode.
        case writes
        /// Both.
        case all
    }

    /// What goes wrong.
    public enum Fault: Hashable, Sendable {
        /// The keychain cannot be used: another process has it, or its file cannot be read. Status: `errSecNotAvailable`.
        case unavailable
        /// A call that would store, change or delete something finds the disk full, and nothing is changed. Status:
        /// `errSecNotAvailable`. Reads need no room.
        case diskFull
        /// The disk answers with an error. Status: `errSecIO`.
        ///
        /// A read has no result then. After a write nobody can say whether it took place; here the test does: `isWritten`. A call
        /// that has nothing to write, as it finds no item or finds a duplicate, says so as ever.
        case inputOutput(isWritten: Bool)
    }

    /// Lets calls fail from now on.
    ///
    ///     keychain.fail(.writes, with: .diskFull, times: 1)
    ///
    /// Of several faults, the one that was asked for first comes first. Valet makes up to three calls for one of its own, each of
    /// which counts.
    ///
    /// - Parameters:
    ///   - calls: Which ones.
    ///   - fault: What goes wrong.
    ///   - times: How often; nil: until ``stopFailing()``.
    public func fail(_ calls: Calls, with fault: Fault, times: Int? = nil) {
        keychain.parts.faults.add(fault, of: calls, times: times ?? .max)
    }

    /// From now on nothing goes wrong any more.
    ///
    /// Items that were damaged stay damaged.
    public func stopFailing() {
        keychain.parts.faults.removeAll()
    }

    /// Damages stored items so that they cannot be decrypted, as a disk may.
    ///
    /// Asked for alone, such an item is answered with `errSecDecode`, never as if it were not there; a search for many skips it.
    ///
    /// - Parameter account: The account of the items, for Valet the key; nil: all items are damaged.
    /// - Throws: ``DamageError`` when there is no such item.
    public func damageItems(account: String? = nil) throws {
        do {
            try control.damageItems(account: account)
        } catch {
            throw DamageError(errorDescription: error.reason)
        }
    }

    /// Damages the secrets of stored items; their attributes stay readable.
    ///
    /// - Parameter account: The account of the items.
    /// - Throws: ``DamageError`` when there is no such item.
    package func damageSecrets(account: String) throws {
        do {
            try control.damageItems(account: account, secretsOnly: true)
        } catch {
            throw DamageError(errorDescription: error.reason)
        }
    }

    /// Why no item was damaged.
    public struct DamageError: Error, LocalizedError {
        /// What is wrong, for people.
        public let errorDescription: String?
    }
}

/// What a test wants to go wrong with the store, until it has gone wrong often enough.
final class FaultQueue: Sendable {
    /// The moments at which something can go wrong.
    enum FaultPoint {
        /// Before the store was looked at.
        case reading, writing
        /// When everything was said to be written that a call has to write, and something was.
        case committing
    }

    private struct Order {
        let calls: InMemoryKeychain.Calls
        let fault: InMemoryKeychain.Fault
        var remaining: Int

        func concerns(_ moment: FaultPoint) -> Bool {
            switch (fault, moment) {
            case (.diskFull, .reading), (.diskFull, .writing): false
            case (.diskFull, .committing): calls != .reads
            case (.unavailable, .committing): false
            case (.inputOutput, .writing): false
            case (.unavailable, .reading), (.inputOutput, .reading): calls != .writes
            case (.unavailable, .writing), (.inputOutput, .committing): calls != .reads
            }
        }
    }

    private let orders = Mutex<[Order]>([])

    func add(_ fault: InMemoryKeychain.Fault, of calls: InMemoryKeychain.Calls, times: Int) {
        guard times > 0 else { return }
        orders.withLock { $0.append(Order(calls: calls, fault: fault, remaining: times)) }
    }

    func removeAll() {
        orders.withLock { $0.removeAll() }
    }

    /// What goes wrong at this moment, in the order in which it was asked for; nil: nothing.
    func take(at moment: FaultPoint) -> InMemoryKeychain.Fault? {
        orders.withLock { orders in
            guard let index = orders.firstIndex(where: { $0.concerns(moment) }) else { return nil }
            let fault = orders[index].fault
            orders[index].remaining -= 1
            if orders[index].remaining == 0 { orders.remove(at: index) }
            return fault
        }
    }
}

extension InMemoryKeychain.Fault {
    /// What the file store says in such a case.
    var failure: KeychainFailure {
        switch self {
        case .unavailable: KeychainFailure(.notAvailable, "the store cannot be used (the test asked for that)")
        case .diskFull: KeychainFailure(.notAvailable, "the disk is full; nothing was changed (the test asked for that)")
        case .inputOutput: KeychainFailure(.inputOutput, "the disk answered with an error (the test asked for that)")
        }
    }
}

/// A store in memory in which a test lets things go wrong, at the moments at which they do in a file.
struct FaultyItemStore: ItemStore {
    let base: InMemoryItemStore
    let faults: FaultQueue

    func read<Result>(
        _ body: (any ItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        if let fault = faults.take(at: .reading) { throw fault.failure }
        return try base.read(body)
    }

    func write<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        if let fault = faults.take(at: .writing) { throw fault.failure }
        var committed: InMemoryKeychain.Fault?
        let outcome = try base.write(ifKeybagGeneration: generation) { writing throws(KeychainFailure) in
            let result = try body(writing)
            let fault = faults.take(at: .committing)
            if let fault, fault != .inputOutput(isWritten: true) { throw fault.failure }
            committed = fault
            return result
        }
        if let committed { throw committed.failure }
        return outcome
    }

    func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure) {
        base.advanceLockEpoch(extent)
    }
}

extension MemoryKeychain {
    /// Changes a bit in everything that is sealed; what rows are found by stays as it is.
    ///
    /// Throws `.itemNotFound` when no item has that account.
    func damageItems(account: String?, secretsOnly: Bool = false) throws(KeychainFailure) {
        try access.perform(creating: true) { opened throws(KeychainFailure) in
            var queries = [RowQuery(isTombstone: false)]
            if let account {
                queries.removeAll()
                for itemClass in [ItemClass.genericPassword, .internetPassword] {
                    let digest = try opened.keybag.cipher.digest(of: .string(account), for: .account, in: itemClass)
                    queries.append(RowQuery(itemClass: itemClass, accountDigest: digest, isTombstone: false))
                }
            }
            try opened.keychain.write { writing throws(KeychainFailure) in
                var rows: [SealedRow] = []
                for query in queries {
                    try writing.forEachRow(matching: query, includingSecrets: true) { row throws(KeychainFailure) in
                        rows.append(row)
                        return .proceed
                    }
                }
                guard !rows.isEmpty else { throw KeychainFailure(.itemNotFound, "there is no such item to damage") }
                for var row in rows {
                    guard let number = row.number else { continue }
                    row.sealedSecret.damage()
                    if !secretsOnly {
                        row.wrappedItemKey.damage()
                        row.sealedAttributes.damage()
                    }
                    try writing.replace(number: number, with: row)
                }
            }
        }
    }
}

extension [UInt8] {
    fileprivate mutating func damage() {
        if let index = indices.first { self[index] ^= 1 }
    }
}
#endif
