// SPDX-License-Identifier: Apache-2.0

/// One thing that the workload asks of the keychain.
package enum WorkloadOperation: Sendable {
    case set(WorkloadItem, to: String)
    case remove(WorkloadItem)
    case removeAll(WorkloadValet)
    case migrate(from: WorkloadValet, to: WorkloadValet, removingOriginals: Bool)
    case setPasscode(String)
    case changePasscode(from: String, to: String, rotatingKeys: Bool)
    case removePasscode(String)
    /// Closes the keychain, which empties the -wal file, and opens it anew.
    case reopen
    /// Closes it too, and makes of its file one of format 1, which the next write upgrades.
    case makeOldFormat
}

/// The valets of the workload, by the names that their items' service contains.
package enum WorkloadValet: String, CaseIterable, Sendable {
    case everyday, afterFirstUnlock, former
    /// Its items go with the passcode.
    case withPasscode
}

/// What a value belongs to.
package struct WorkloadItem: Hashable, Sendable, CustomStringConvertible {
    package let valet: WorkloadValet
    package let key: String

    package init(valet: WorkloadValet, key: String) {
        self.valet = valet
        self.key = key
    }

    package var description: String { "\(valet.rawValue)/\(key)" }
}
