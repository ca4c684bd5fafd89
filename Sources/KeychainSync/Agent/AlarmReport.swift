// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine
internal import SyncCore

/// An alarm of the engine in words.
struct AlarmReport: Sendable {
    /// What a person has to know, and what to do.
    let text: String
    /// The failure of a run that ends when it is quiet; nil if the run has done what it could.
    let failure: SyncFailure?

    fileprivate init(_ text: String) {
        self.text = text
        failure = nil
    }

    fileprivate init(_ code: SyncFailure.Code, _ reason: String, advice: String) {
        text = reason + "; " + advice
        failure = SyncFailure(code, reason)
    }
}

extension AlarmReport {
    /// Describes an alarm, with the name of the device that it is about.
    init(_ alarm: SyncAlarm, _ notes: DeviceNotes?) {
        func name(of device: DeviceID?) -> String {
            guard let device, let notes else { return "another device" }
            return notes[device]?.name?.text ?? "an unnamed device"
        }
        self =
            switch alarm {
            case .newerFormat(let device):
                AlarmReport(
                    .newerVersion, "\(name(of: device)) uses a newer version of the program, so its changes wait",
                    advice: "update this program"
                )
            case .massDeletion(let count):
                AlarmReport(
                    .deletionsWait, "other devices have deleted \(count) items, which waits for a confirmation",
                    advice: "nothing of it was deleted here; if it was done on purpose, run `valet sync accept-deletions`")
            case .invalidBatch(let device):
                AlarmReport("\(name(of: device)) has sent something invalid, which was ignored; if it goes on, remove the device")
            case .missingStatement:
                AlarmReport(
                    "the folder lacks a part of what was stated about the devices of the circle; synchronization continues without it")
            case .itemLeftAlone:
                AlarmReport(
                    "a received item could not replace the one on this device, which a newer version of the program wrote or which is for this device"
                )
            case .itemTooLarge: AlarmReport("an item of this device has more than 1 MiB, so it is not shared, and stays here")
            case .unsentWriteLost: AlarmReport("a damaged item was lost before it could be sent; `valet verify` shows what is damaged")
            case .admissionVoid:
                AlarmReport(
                    .unconfirmed, "the owner that admitted this device was removed, and no other device has confirmed the admission",
                    advice: "the changes of this device wait; if no other one confirms it, run `valet sync leave`, then join again")
            case .removed: AlarmReport(.removed, "this device was removed from its circle", advice: "its items stay here")
            }
    }
}

extension EngineHost {
    /// Describes an alarm, with the name of the device that it is about.
    func report(of alarm: SyncAlarm) -> AlarmReport {
        AlarmReport(alarm, try? keychain.readLedger { ledger throws(KeychainFailure) in try DeviceNotes(in: ledger) })
    }

    /// Stores why the last round could not use the storage, for people who ask for the status; an empty text if it could.
    ///
    /// Returns whether it is stored. Best effort: the next round stores it, too.
    func storeStorageFailure(_ reason: String) -> Bool {
        let bytes = reason.isEmpty ? nil : Array(reason.utf8)
        do throws(KeychainFailure) {
            guard try keychain.readLedger({ ledger throws(KeychainFailure) in try ledger.setting(.storageFailure) }) != bytes else {
                return true
            }
            try keychain.synchronize { ledger, _ throws(KeychainFailure) in try ledger.set(.storageFailure, to: bytes) }
            return true
        } catch {
            return false
        }
    }

    /// Stores the alarms of a round for people who ask for the status.
    ///
    /// `isComplete`: whether the round has read everything. Returns whether none is stored now. Best effort: the next round stores them, too.
    func store(_ alarms: Set<SyncAlarm>, isComplete: Bool) -> Bool {
        do throws(KeychainFailure) {
            var stored = try keychain.readLedger { ledger throws(KeychainFailure) in try StoredAlarms(in: ledger) }
            let before = stored
            stored.note(alarms.union(try unseen(before)), isComplete: isComplete, now: clock.now())
            guard stored.all != before.all else { return stored.all.isEmpty }
            try keychain.synchronize { ledger, _ throws(KeychainFailure) in try stored.store(insteadOf: before, in: ledger) }
            return stored.all.isEmpty
        } catch {
            return false
        }
    }

    /// The alarms about items that are too large, whose causes a round does not see while the keychain is locked.
    private func unseen(_ stored: StoredAlarms) throws(KeychainFailure) -> [SyncAlarm] {
        let alarms = stored.all.filter { if case .itemTooLarge = $0 { true } else { false } }
        guard !alarms.isEmpty else { return [] }
        guard try keychain.sessionStatus().state != .unlocked else { return [] }
        return try keychain.readLedger { ledger throws(KeychainFailure) in
            var unseen: [SyncAlarm] = []
            for case .itemTooLarge(let name) in alarms
            where try ledger.liveVersions(named: name).contains(where: { $0.reference.origin == nil }) {
                unseen.append(.itemTooLarge(name))
            }
            return unseen
        }
    }
}
#endif
