// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
public import FoundationEssentials
internal import KeychainCore
internal import KeychainEngine
internal import SyncCore

/// A device that this one has removed, and what is left to change.
public struct SyncRemovedDevice: Hashable, Identifiable, Sendable {
    /// The ``SyncDevice/id`` that the device had.
    public let id: String
    /// The name that it had; nil if it had not told one.
    public let name: String?
    /// When it was removed, by this device's clock.
    public let removed: Date
    /// The items that still have the value which the device could read.
    public let exposedItems: [SyncItem]
    /// The number of further such items, whose names are not known while the keychain is locked.
    public let lockedItemCount: Int
}

extension KeychainSync {
    /// Lists the devices that this one has removed, the last one first, with the items that were not changed since.
    ///
    /// A device keeps what it has read. So a person changes the secrets of these items if the device is in other hands. Items that another device
    /// has sent before it learned of the removal are not listed, although the removed device could read them.
    ///
    /// - Returns: The devices; empty if this one has removed none. Those that others have removed are not listed.
    /// - Throws: `.notStarted` and `.keychain`.
    public static func removedDevices() throws(SyncFailure) -> [SyncRemovedDevice] {
        let local = try LocalCircle.current()
        _ = try local.membership()
        // A removal that was refused leaves a record, too.
        let removed = try local.roster().removed
        return try local.attempt { () throws(KeychainFailure) in
            try local.keychain.synchronize { ledger, items throws(KeychainFailure) in
                var devices: [SyncRemovedDevice] = []
                for record in try RemovalRecords(in: ledger).records.reversed() where removed.contains(record.device) {
                    var exposed: [SyncItem] = []
                    var lockedCount = 0
                    for version in try record.exposedVersions(in: ledger) {
                        do throws(KeychainFailure) {
                            guard let content = try items.content(of: version), let item = SyncItem(content) else { continue }
                            exposed.append(item)
                        } catch {
                            guard error.status == .interactionNotAllowed else { throw error }
                            lockedCount += 1
                        }
                    }
                    devices.append(
                        SyncRemovedDevice(
                            id: record.device.hexadecimal, name: DeviceName(utf8: record.name)?.text,
                            removed: Date(timeIntervalSinceReferenceDate: record.seconds), exposedItems: exposed.sorted(),
                            lockedItemCount: lockedCount))
                }
                return devices
            }
        }
    }
}

/// What a removed device could read.
struct RemovalRecord: Equatable {
    let device: DeviceID
    let name: [UInt8]
    /// When the device was removed, in seconds since 2001-01-01 00:00:00 UTC.
    let seconds: Double
    /// The number of the last batch of each log with a version that was live.
    ///
    /// What this device had not sent yet is sent under the new keys, and so are later batches of every device that knows of the removal.
    let lastNumbers: [LogID: UInt64]

    /// Records what a member can read now.
    init(of device: DeviceID, name: [UInt8], seconds: Double, in ledger: any SyncReading) throws(KeychainFailure) {
        var lastNumbers: [LogID: UInt64] = [:]
        try LocalCircle.forEachLiveVersion(in: ledger) { version in
            if let origin = version.reference.origin { lastNumbers[origin.log] = max(lastNumbers[origin.log] ?? 0, origin.number) }
        }
        self.init(device: device, name: name, seconds: seconds, lastNumbers: lastNumbers)
    }

    fileprivate init(device: DeviceID, name: [UInt8], seconds: Double, lastNumbers: [LogID: UInt64]) {
        self.device = device
        self.name = name
        self.seconds = seconds
        self.lastNumbers = lastNumbers
    }

    /// Returns the visible versions that the device could read.
    func exposedVersions(in ledger: any SyncReading) throws(KeychainFailure) -> [LiveVersion] {
        var versions: [LiveVersion] = []
        try LocalCircle.forEachLiveVersion(in: ledger) { version in
            guard version.item != nil, let origin = version.reference.origin, let last = lastNumbers[origin.log], origin.number <= last
            else { return }
            versions.append(version)
        }
        return versions
    }
}

/// The removals by this device, the oldest first, as stored in the ledger.
struct RemovalRecords: Equatable {
    private(set) var records: [RemovalRecord] = []

    /// Earlier removals are forgotten.
    private static let largestCount = 32

    init(in ledger: any SyncReading) throws(KeychainFailure) {
        // They are for people only. Those that cannot be read are lost.
        records = try ledger.setting(.removals).flatMap(Self.records) ?? []
    }

    mutating func add(_ record: RemovalRecord, in ledger: any SyncWriting) throws(KeychainFailure) {
        records.removeAll { $0.device == record.device }
        records.append(record)
        records.removeFirst(max(records.count - Self.largestCount, 0))
        try ledger.set(.removals, to: encoded)
    }

    /// `version (1) ‖ records`; a record is `device (16) ‖ seconds (8) ‖ counted(name) ‖ count (4) ‖ logs (16) with numbers (8)`.
    private var encoded: [UInt8] {
        var bytes: [UInt8] = [1]
        for record in records {
            bytes.append(record.device.value)
            bytes.append(littleEndian: record.seconds.bitPattern)
            bytes.append(lengthPrefixed: record.name)
            bytes.append(littleEndian: UInt32(record.lastNumbers.count))
            for (log, number) in record.lastNumbers.sorted(by: { $0.key < $1.key }) {
                bytes.append(log.value)
                bytes.append(littleEndian: number)
            }
        }
        return bytes
    }

    private static func records(_ bytes: [UInt8]) -> [RemovalRecord]? {
        var reader = ByteReader(bytes)
        guard reader.readByte() == 1 else { return nil }
        var records: [RemovalRecord] = []
        while !reader.isAtEnd {
            guard let device = reader.readBytes(Identifier128.byteCount).flatMap({ DeviceID($0) }), let seconds = reader.readUInt64(),
                let name = reader.readLengthPrefixed(), let count = reader.readUInt32()
            else { return nil }
            var lastNumbers: [LogID: UInt64] = [:]
            for _ in 0..<count {
                guard let log = reader.readBytes(Identifier128.byteCount).flatMap({ LogID($0) }), let number = reader.readUInt64()
                else { return nil }
                lastNumbers[log] = number
            }
            records.append(
                RemovalRecord(
                    device: device, name: Array(name), seconds: Double(bitPattern: seconds), lastNumbers: lastNumbers))
        }
        return records
    }
}
#endif
