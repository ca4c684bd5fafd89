// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// What happened since the last step of the engine.
package enum SyncEvent: Sendable {
    /// The agent started, a timer fired, or the storage hinted at a change of something else than batches.
    case wake
    /// A program changed an item, or a class was locked or unlocked.
    case itemsChanged
    /// The names in a folder. They may be old, incomplete, unordered, or foreign.
    case listed(ObjectName.Folder, [String])
    /// The storage hinted at new batches with these names; they may be known, foreign, or not there.
    case appeared([String])
    /// The content of an object, possibly torn; nil: not there, or not yet.
    case read(String, [UInt8]?)
    /// An object was created, or was there already.
    case created(String)
    /// Whether an operation took effect is unknown.
    case failed(String)
    /// A person asked for something.
    case command(SyncCommand)
    /// The pieces of a checkpoint were written, or could not be.
    case checkpoint(CheckpointOutcome)

    /// Whether a statement was read, or cannot be read.
    var isOfStatement: Bool {
        switch self {
        case .read(let name, _), .failed(let name): name.utf8.first == UInt8(ascii: "m")
        case .wake, .itemsChanged, .listed, .appeared, .created, .command, .checkpoint: false
        }
    }

    package var isCommand: Bool { if case .command = self { true } else { false } }

    /// Whether the storage is listed after it.
    var beginsRound: Bool {
        switch self {
        case .wake, .itemsChanged: true
        case .listed, .appeared, .read, .created, .failed, .command, .checkpoint: false
        }
    }
}

/// What a person asks for.
package enum SyncCommand: Sendable {
    /// Admits a device.
    case admit(DevicePublicKeys, DeviceRole)
    /// Admits a recovery kit, which is an owner that is no machine.
    case admitRecoveryKit(SharedSecretBytes)
    /// Admits the reader that a credential stands for.
    case admitCredential(DevicePublicKeys, CredentialNote)
    /// Names this device.
    case rename(DeviceName)
    /// Removes a device and makes new keys.
    case remove(DeviceID)
    /// Accepts the deletions that the guard has stopped.
    case acceptDeletions
    /// Shows a conflict copy instead of the visible version, and ends the conflict.
    case keep(ItemName, VersionReference)
    /// Shares the former versions of these items, which the circle does not have, or deletes them here.
    case decide([ItemName], shares: Bool)
    /// Looks for lost contents now.
    case checkContents
}

/// What the agent has to do.
package enum SyncEffect: Hashable, Sendable {
    case list(ObjectName.Folder)
    /// Reads at most this many bytes.
    case read(String, atMost: Int)
    case create(String, [UInt8])
    case remove(String)
    /// Lets the engine's checkpoint writer write pieces into the ledger.
    case writeCheckpoint
    /// Sends `wake` at that time, in seconds since 2001-01-01 00:00:00 UTC.
    case wake(at: Double)
    case alarm(SyncAlarm)
}

/// What a person has to know.
package enum SyncAlarm: Hashable, Sendable {
    /// A newer version of the program wrote an object, which waits; nil if the object does not tell its author.
    case newerFormat(DeviceID?)
    /// A member signed something that this format does not permit.
    case invalidBatch(DeviceID)
    /// This device was removed from its circle.
    case removed
    /// The owner that admitted this device was removed, and no other device has testified for the admission yet.
    case admissionVoid
    /// A member names a statement that the storage does not have.
    case missingStatement(StatementHash)
    /// So many deletions wait for a person.
    case massDeletion(Int)
    /// The row of an item is of a newer format.
    case itemLeftAlone(ItemName)
    /// An item is larger than a batch can contain, so it is not shared.
    case itemTooLarge(ItemName)
    /// A write was lost with its row before it could be sent. The next write of the item by a program takes its place.
    case unsentWriteLost(ItemName)
}
