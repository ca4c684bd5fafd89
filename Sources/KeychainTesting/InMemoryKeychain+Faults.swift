// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
public import Foundation
internal import KeychainCore

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

    /// Why no item was damaged.
    public struct DamageError: Error, LocalizedError {
        /// What is wrong, for people.
        public let errorDescription: String?
    }
}
#endif
