// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
public import Foundation
internal import Keybag
internal import KeychainCore
internal import KeychainEngine
internal import Synchronization

/// Faults of a keychain, for tests of a program's error handling.
///
/// A locked keychain is not a fault: see ``lock(includingAfterFirstUnlock:)``.
extension InMemoryKeychain {
    /// The calls that a fault affects.
    public enum Calls: Hashable, Sendable {
        /// Calls that search for items: `SecItemCopyMatching`.
        case reads
        /// Calls that change something: `SecItemAdd`, `SecItemUpdate`, `SecItemDelete`, and changes of the passcode.
        case writes
        /// All calls.
        case all
    }

    /// A fault of the keychain.
    public enum Fault: Hashable, Sendable {
        /// The keychain cannot be used: for example, its file cannot be read. The status is `errSecNotAvailable`.
        case unavailable
        /// The disk is full: a call that stores, changes, or deletes something changes nothing. The status is `errSecNotAvailable`.
        ///
        /// Searches are not affected.
        case diskFull
        /// The disk reports an error. The status is `errSecIO`.
        ///
        /// A search has no result. After a failed write, a program does not know whether the change was written; the test decides with
        /// `isWritten`. A call that writes nothing, because it finds no item or finds a duplicate, returns its usual status.
        case inputOutput(isWritten: Bool)
    }

    /// Makes calls of the program under test fail from now on.
    ///
    ///     keychain.fail(.writes, with: .diskFull, times: 1)
    ///
    /// If several faults affect a call, the one that was requested first occurs. One call of Valet makes up to three keychain calls,
    /// and each of them counts.
    ///
    /// - Parameters:
    ///   - calls: The calls that fail.
    ///   - fault: The fault that occurs.
    ///   - times: How many calls fail; nil: all calls until ``stopFailing()``.
    public func fail(_ calls: Calls, with fault: Fault, times: Int? = nil) {
        storage.faults.add(fault, of: calls, times: times ?? .max)
    }

    /// Removes all faults that ``fail(_:with:times:)`` requested.
    ///
    /// Damaged items stay damaged.
    public func stopFailing() {
        storage.faults.removeAll()
    }

    /// Damages stored items so that they cannot be decrypted.
    ///
    /// A search for one damaged item returns `errSecDecode`, never `errSecItemNotFound`. A search for several items skips damaged ones.
    ///
    /// - Parameter account: The account of the items to damage, which for Valet is the key; nil: all items.
    /// - Throws: ``DamageError`` if there is no such item.
    public func damageItems(account: String? = nil) throws {
        do {
            try damage(account: account)
        } catch {
            throw DamageError(errorDescription: error.reason)
        }
    }

    /// Damages the secrets of stored items; their attributes stay readable.
    ///
    /// - Parameter account: The account of the items.
    /// - Throws: ``DamageError`` if there is no such item.
    package func damageSecrets(account: String) throws {
        do {
            try damage(account: account, secretsOnly: true)
        } catch {
            throw DamageError(errorDescription: error.reason)
        }
    }

    /// The error of ``damageItems(account:)``: no item was damaged.
    public struct DamageError: Error, LocalizedError {
        /// The reason, for people.
        public let errorDescription: String?
    }

    /// Changes a bit in all sealed parts of rows; the columns that searches use stay intact.
    ///
    /// Throws `.itemNotFound` if no item has that account.
    private func damage(account: String?, secretsOnly: Bool = false) throws(KeychainFailure) {
        try unrestricted.perform(creating: true) { opened throws(KeychainFailure) in
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

/// The faults that a test has requested and that have not all occurred yet.
final class FaultQueue: Sendable {
    /// The points of a call at which a fault can occur.
    enum FaultPoint {
        /// Before the store is read or written.
        case reading, writing
        /// Before the commit of a call that has something to write.
        case committing
    }

    private struct Request {
        let calls: InMemoryKeychain.Calls
        let fault: InMemoryKeychain.Fault
        var remaining: Int

        func occurs(at point: FaultPoint) -> Bool {
            switch (fault, point) {
            case (.diskFull, .reading), (.diskFull, .writing): false
            case (.diskFull, .committing): calls != .reads
            case (.unavailable, .committing): false
            case (.inputOutput, .writing): false
            case (.unavailable, .reading), (.inputOutput, .reading): calls != .writes
            case (.unavailable, .writing), (.inputOutput, .committing): calls != .reads
            }
        }
    }

    private let requests = Mutex<[Request]>([])

    func add(_ fault: InMemoryKeychain.Fault, of calls: InMemoryKeychain.Calls, times: Int) {
        guard times > 0 else { return }
        requests.withLock { $0.append(Request(calls: calls, fault: fault, remaining: times)) }
    }

    func removeAll() {
        requests.withLock { $0.removeAll() }
    }

    /// Returns the first requested fault that occurs at this point, and counts it; nil if there is none.
    func next(at point: FaultPoint) -> InMemoryKeychain.Fault? {
        requests.withLock { requests in
            guard let index = requests.firstIndex(where: { $0.occurs(at: point) }) else { return nil }
            let fault = requests[index].fault
            requests[index].remaining -= 1
            if requests[index].remaining == 0 { requests.remove(at: index) }
            return fault
        }
    }
}

extension InMemoryKeychain.Fault {
    /// The failure of a commit in a file store with this fault.
    fileprivate var commitFailure: KeychainFailure {
        guard case .inputOutput = self else { return failure }
        return KeychainFailure(
            .inputOutput, "the disk answered with an error, and the change may or may not be written (the test asked for that)",
            subject: .store, cause: .outcomeUnknown)
    }

    /// The failure of a file store with this fault.
    var failure: KeychainFailure {
        switch self {
        case .unavailable: KeychainFailure(.notAvailable, "the store cannot be used (the test asked for that)")
        case .diskFull:
            KeychainFailure(
                .notAvailable, "the disk is full (the test asked for that)", subject: .store, cause: .diskFull)
        case .inputOutput: KeychainFailure(.inputOutput, "the disk answered with an error (the test asked for that)")
        }
    }
}

/// A store in memory with the faults that a test requests, at the points at which they occur in a file.
struct FaultyItemStore: ItemStore {
    let base: InMemoryItemStore
    let faults: FaultQueue

    func read<Result>(
        _ body: (any ItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        if let fault = faults.next(at: .reading) { throw fault.failure }
        return try base.read(body)
    }

    func write<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        if let fault = faults.next(at: .writing) { throw fault.failure }
        var committed: InMemoryKeychain.Fault?
        let outcome = try base.write(ifKeybagGeneration: generation) { writing throws(KeychainFailure) in
            let result = try body(writing)
            let fault = faults.next(at: .committing)
            if let fault, fault != .inputOutput(isWritten: true) { throw fault.commitFailure }
            committed = fault
            return result
        }
        if let committed { throw committed.commitFailure }
        return outcome
    }

    func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure) {
        base.advanceLockEpoch(extent)
    }
}

extension [UInt8] {
    fileprivate mutating func damage() {
        if let index = indices.first { self[index] ^= 1 }
    }
}
#endif
