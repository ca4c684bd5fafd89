// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
public import FoundationEssentials
internal import KeychainCore
internal import KeychainEngine
internal import SyncCore

/// A device of the circle.
public struct SyncDevice: Hashable, Identifiable, Sendable {
    /// Identifies the device for ever: 32 hexadecimal digits, from its public keys and its role.
    public let id: String
    /// What the device calls itself; nil if it has not told that yet.
    public let name: String?
    /// What it may do.
    public let role: SyncRole
    /// Whether it is this device.
    public let isThisDevice: Bool
    /// When it sent what this device has read last of it, by its own clock; nil if it has sent nothing yet.
    ///
    /// Readers never send anything.
    public let lastSent: Date?
    /// When the credential expires whose reader the device is; nil if it has joined by an invitation.
    ///
    /// Any number of machines may be this one device.
    public let expires: Date?
    /// The other devices with the same keys, by their identifiers.
    ///
    /// They are one machine, which two owners have admitted at the same time in different roles. ``KeychainSync/remove(_:on:)`` removes all of them.
    public let twins: Set<SyncDevice.ID>
}

/// A device that was removed, and what it could read.
public struct SyncRemoval: Hashable, Sendable {
    /// The device.
    public let device: SyncDevice
    /// The number of items whose values it could read until now.
    ///
    /// ``KeychainSync/removedDevices()`` lists those that were not changed since.
    public let readableItemCount: Int
    /// Why changes of the device may not have been read before; nil if none is known to be missing.
    ///
    /// They may never be read now.
    public let unread: SyncFailure?
    /// Why the removal was not sent yet; nil if it was.
    ///
    /// An agent sends it.
    public let unsent: SyncFailure?
}

extension KeychainSync {
    /// Lists the devices of the circle, this one first, then by name.
    ///
    /// The recovery kit is none.
    ///
    /// - Returns: What this device knows.
    /// - Throws: `.notStarted`, `.locked`, and `.keychain`.
    public static func devices() throws(SyncFailure) -> [SyncDevice] {
        let local = try LocalCircle.current()
        let membership = try local.membership()
        let roster = try local.roster()
        let (notes, ownName, ownExpiration) = try local.readLedger { ledger throws(KeychainFailure) in
            (try DeviceNotes(in: ledger), try ledger.setting(.ownName), try ReaderCredential.expiration(in: ledger))
        }
        let devices = roster.members.filter { !$0.value.isRecoveryKit }.map { id, member in
            let isThisDevice = id == membership.device
            let name = isThisDevice ? ownName.flatMap { DeviceName(utf8: $0) } : notes[id]?.name
            return SyncDevice(
                id: id.hexadecimal, name: name?.text, role: SyncRole(member.role), isThisDevice: isThisDevice,
                lastSent: isThisDevice ? nil : notes[id]?.seconds.map { Date(timeIntervalSinceReferenceDate: $0) },
                expires: (isThisDevice ? ownExpiration : notes[id]?.expiration).map { Date(timeIntervalSinceReferenceDate: $0) },
                twins: Set(roster.members.lazy.filter { $0.key != id && $0.value.keys == member.keys }.map(\.key.hexadecimal)))
        }
        return devices.sorted { ($0.isThisDevice ? 0 : 1, $0.name ?? "~", $0.id) < ($1.isThisDevice ? 0 : 1, $1.name ?? "~", $1.id) }
    }

    /// Lists the devices that are no members because the owner that admitted them was removed, and whose admission no other device has confirmed.
    ///
    /// They warn of it themselves, and what they send is not read: see ``SyncFailure/Code-swift.enum/unconfirmed``. A device that knew one of them before
    /// the removal confirms it with its next exchange. Otherwise the person at such a device leaves the circle and joins again, which makes it another
    /// device; this list keeps the former one. Readers are not listed. A removed device can make up what is listed, so a person has to know the device.
    ///
    /// - Returns: What this device knows if it is an owner, otherwise nothing.
    /// - Throws: `.notStarted`, `.locked`, and `.keychain`.
    public static func unconfirmedDevices() throws(SyncFailure) -> [SyncDevice] {
        let local = try LocalCircle.current()
        let membership = try local.membership()
        let roster = try local.roster()
        guard roster.members[membership.device]?.role.isOwner == true else { return [] }
        let notes = try local.readLedger { ledger throws(KeychainFailure) in try DeviceNotes(in: ledger) }
        return roster.authors.keys.sorted().compactMap { id in
            guard roster.members[id] == nil, !roster.removed.contains(id), let keys = roster.authors[id],
                let role = [DeviceRole.owner, .writer].first(where: { DeviceID(of: keys, role: $0, cipher: LocalCircle.cipher) == id })
            else { return nil }
            return SyncDevice(
                id: id.hexadecimal, name: notes[id]?.name?.text, role: SyncRole(role), isThisDevice: false, lastSent: nil, expires: nil,
                twins: [])
        }
    }

    /// Names this device.
    ///
    /// The others learn of it with what it sends next.
    ///
    /// - Parameters:
    ///   - name: 1 to 64 bytes of UTF-8, visible characters with single spaces between them.
    ///   - storage: The storage of the circle.
    /// - Throws: `.notStarted`, `.invalidInput`, `.locked`, and `.keychain`.
    public static func rename(to name: String, on storage: any SyncStorage) async throws(SyncFailure) {
        let local = try LocalCircle.current()
        let name = try LocalCircle.deviceName(name)
        _ = try local.membership()
        try await EngineHost(local.keychain, clock: local.clock).perform(.rename(name))
        _ = await local.exchange(over: storage)
    }

    /// Reads what the storage has, and sends nothing: what waits here can be sealed under new keys after a removal.
    ///
    /// If an agent runs, it has read what has arrived. A person who removes a device should know before why something of it may not be read: afterwards it
    /// never is.
    ///
    /// - Parameter storage: The storage of the circle.
    /// - Returns: Why something may not have been read, for example `.locked`, `.storage`, or `.deletionsWait`; nil if nothing is known to be missing.
    /// - Throws: `.notStarted`, `.removed`, `.unconfirmed`, `.locked` if the keychain was not unlocked since the machine was started, and `.keychain`.
    public static func readChanges(on storage: any SyncStorage) async throws(SyncFailure) -> SyncFailure? {
        let local = try LocalCircle.current()
        _ = try local.membership()
        if let failure = await local.exchange(over: storage, reportsUnread: true, sealsChanges: false) {
            if [.removed, .unconfirmed].contains(failure.code) { throw failure }
            return failure
        }
        if try local.attempt({ () throws(KeychainFailure) in try local.keychain.sessionStatus().state }) != .unlocked {
            return SyncFailure(.locked, "the keychain is locked")
        }
        let failure = try local.readLedger { ledger throws(KeychainFailure) in try ledger.setting(.storageFailure) }
        if let failure { return SyncFailure(.storage, String(decoding: failure, as: UTF8.self)) }
        return try missingChanges(in: local)
    }

    /// Removes a device from the circle, and makes new keys in the same step.
    ///
    /// The device can read nothing that is written by a device that knows of the removal. It keeps what it has read, so a person should change the secrets
    /// of items that it could read.
    ///
    /// What the device has sent is not believed after its removal unless another device has read it, so it is read before: ``readChanges(on:)``.
    ///
    /// - Parameters:
    ///   - id: The ``SyncDevice/id`` of another device.
    ///   - storage: The storage of the circle.
    /// - Returns: The device, and how much it could read.
    /// - Throws: `.notStarted`, `.notOwner`, `.removed` or `.unconfirmed` if this device is no member itself, `.notFound` if no other device has the
    ///   identifier, `.locked`, and `.keychain`.
    public static func remove(_ id: SyncDevice.ID, on storage: any SyncStorage) async throws(SyncFailure) -> SyncRemoval {
        let local = try LocalCircle.current()
        let unread = try await readChanges(on: storage)
        guard let device = try devices().first(where: { $0.id == id && !$0.isThisDevice }),
            let subject = Identifier128(hexadecimal: id).map({ DeviceID($0) })
        else { throw SyncFailure(.notFound, "the circle has no other device with this identifier") }
        let count = try local.counts().shared
        // Recorded first, because the removal makes new keys.
        try local.attempt { () throws(KeychainFailure) in
            try local.keychain.synchronize { ledger, _ throws(KeychainFailure) in
                var removals = try RemovalRecords(in: ledger)
                let record = try RemovalRecord(
                    of: subject, name: Array((device.name ?? "").utf8), seconds: local.clock.now(), in: ledger)
                try removals.add(record, in: ledger)
            }
        }
        try await EngineHost(local.keychain, clock: local.clock).perform(.remove(subject))
        return SyncRemoval(device: device, readableItemCount: count, unread: unread, unsent: await local.exchange(over: storage))
    }

    /// Confirms that items are deleted which other devices have deleted.
    ///
    /// An agent asks for this if more than 100 items, and more than a tenth of all, are deleted within a day. Until then none of the later changes
    /// of such a device is read.
    ///
    /// - Parameter storage: The storage of the circle.
    /// - Throws: `.notStarted`, `.locked`, and `.keychain`; what ``SyncAgent/runUntilQuiet()`` throws if the deletions were confirmed, but not yet
    ///   read.
    public static func acceptDeletions(on storage: any SyncStorage) async throws(SyncFailure) {
        let local = try LocalCircle.current()
        _ = try local.membership()
        try await EngineHost(local.keychain, clock: local.clock).perform(.acceptDeletions)
        if let failure = await local.exchange(over: storage, reportsUnread: true) { throw failure }
    }
}
#endif
