// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// What the members of a circle have told of themselves in their batches, and what owners have told of credentials, as stored in the ledger.
package struct DeviceNotes: Equatable, Sendable {
    package struct Entry: Equatable, Sendable {
        /// Nil if the device has not told a name that can be shown.
        package var name: DeviceName?
        /// When it sealed the batch that was read last, by its own clock, in seconds since 2001-01-01 00:00:00 UTC; nil if none was read.
        package var seconds: Double?
        /// When the credential expires whose reader the device is; nil for another device.
        package var expiration: Double?
    }

    private var entries: [DeviceID: Entry] = [:]

    init() {}

    /// Returns what is in the ledger.
    package init(in ledger: any SyncReading) throws(KeychainFailure) {
        self.init()
        guard let bytes = try ledger.setting(.deviceNotes) else { return }
        do throws(FormatError) {
            self = try DeviceNotes(bytes)
        } catch {
            // They are for people only, and the next batches tell them again.
            return
        }
    }

    package subscript(device: DeviceID) -> Entry? { entries[device] }

    /// Also of an earlier time: the device's clock may have been set right.
    mutating func note(_ notes: BatchNotes, of device: DeviceID) {
        entries[device] = Entry(
            name: DeviceName(utf8: notes.deviceName) ?? entries[device]?.name, seconds: notes.seconds,
            expiration: entries[device]?.expiration)
    }

    mutating func note(_ note: CredentialNote, of device: DeviceID) {
        entries[device] = Entry(name: note.name, seconds: entries[device]?.seconds, expiration: note.expiration)
    }

    /// Stores the name that a device has told in its request to join: a reader never tells another one.
    package static func note(_ name: DeviceName, of device: DeviceID, in ledger: any SyncWriting) throws(KeychainFailure) {
        var all = try DeviceNotes(in: ledger)
        all.entries[device] = Entry(name: name, seconds: nil)
        try ledger.set(.deviceNotes, to: all.encoded)
    }

    var encoded: [UInt8] {
        var bytes: [UInt8] = [1]
        for (device, entry) in entries.sorted(by: { $0.key < $1.key }) {
            bytes.append(device)
            bytes.append((entry.seconds == nil ? 0 : 1) | (entry.expiration == nil ? 0 : 2))
            if let seconds = entry.seconds { bytes.append(seconds: seconds) }
            if let expiration = entry.expiration { bytes.append(seconds: expiration) }
            bytes.append(lengthPrefixed: entry.name?.utf8 ?? [])
        }
        return bytes
    }

    init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(1)
        while reader.remaining > 0 {
            let device = DeviceID(try reader.identifier())
            let presence = try reader.byte()
            guard presence <= 3 else { throw .malformed }
            let seconds = presence & 1 == 0 ? nil : try reader.seconds()
            let expiration = presence & 2 == 0 ? nil : try reader.seconds()
            let name = try reader.counted(atMost: BatchNotes.largestNameByteCount)
            entries[device] = Entry(name: DeviceName(utf8: name), seconds: seconds, expiration: expiration)
        }
    }
}

extension EngineStep {
    /// Remembers what a member tells of itself.
    func note(_ notes: BatchNotes, of member: DeviceID) throws(KeychainFailure) {
        var all = try DeviceNotes(in: ledger)
        let before = all
        all.note(notes, of: member)
        if all != before { try ledger.set(.deviceNotes, to: all.encoded) }
    }
}
