// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// A rule that the ledger of every `SyncStore` follows, with a check.
///
/// Run all of `SyncLedgerContract.rules`, each on a fresh, empty store whose keybag is `ItemStoreContract.keybag`.
package struct SyncLedgerContract: Sendable, CustomStringConvertible {
    /// The rule, in one sentence.
    package let description: String
    private let check: @Sendable (any SyncStore, inout ContractFindings) throws(KeychainFailure) -> Void

    private init(
        _ description: String, _ check: @escaping @Sendable (any SyncStore, inout ContractFindings) throws(KeychainFailure) -> Void
    ) {
        self.description = description
        self.check = check
    }

    /// All rules; each needs a fresh store.
    package static let rules = versionRules + logRules + objectRules + copyRules

    /// Returns a sentence for each violation of the rule by `store`; empty if it follows the rule.
    package func violations(of store: any SyncStore) -> [String] {
        ContractFindings.violations { findings throws(KeychainFailure) in
            try store.startSynchronizing()
            try check(store, &findings)
        }
    }
}

extension SyncLedgerContract {
    private static let versionRules = [
        SyncLedgerContract("A live version is found by reference, by name, and by item") { store, findings throws(KeychainFailure) in
            let item = Identifier128.random()
            let versions = [
                SampleVersions.live(1, origin: SampleVersions.origin(1), name: 1, item: item),
                SampleVersions.live(2, origin: nil, name: 1, date: nil, digest: nil),
                SampleVersions.live(3, origin: SampleVersions.origin(2), name: 2),
            ]
            try store.changeLedger { writing throws(KeychainFailure) in
                for version in versions { try writing.insert(version) }
                for version in versions {
                    findings.expect(try writing.liveVersion(version.reference) == version, "\(version) is not found")
                }
                findings.expect(
                    try writing.liveVersions(named: versions[0].name) == versions[0...1].sorted { $0.reference < $1.reference },
                    "the versions of a name")
                findings.expect(try writing.liveVersion(shownBy: item) == versions[0], "the version that an item shows")
                findings.expect(try writing.liveVersion(shownBy: .random()) == nil, "an item without a version")
                findings.expect(try writing.liveVersionCount() == 3, "the count within the transaction")
                findings.expect(try writing.shownVersionCount() == 1, "the number of versions that items show")
                findings.expect(
                    try writing.namesOfHiddenVersions() == Set(versions[1...].map(\.name)).sorted(), "the names of the other versions")
            }
            findings.expect(try store.readLedger { reading throws(KeychainFailure) in try reading.liveVersionCount() } == 3, "the count")
        },
        SyncLedgerContract("One identifier in two batches is two versions") { store, findings throws(KeychainFailure) in
            let versions = [nil, SampleVersions.origin(1), SampleVersions.origin(1, number: 2), SampleVersions.origin(2)].map {
                SampleVersions.live(7, origin: $0, name: 1)
            }.sorted { $0.reference < $1.reference }
            try store.changeLedger { writing throws(KeychainFailure) in
                for version in versions.shuffled() { try writing.insert(version) }
                findings.expectFailure(.duplicateItem, "a second version with the reference") { () throws(KeychainFailure) in
                    try writing.insert(versions[2])
                }
                findings.expect(try writing.liveVersions(named: versions[0].name) == versions, "the order of references")
                try writing.remove(versions[1].reference)
                findings.expect(try writing.liveVersion(versions[1].reference) == nil, "a removed version is found")
                findings.expect(try writing.liveVersion(versions[2].reference) == versions[2], "another version was removed")
                findings.expect(
                    try writing.liveVersion(VersionReference(id: versions[0].reference.id, origin: SampleVersions.origin(9))) == nil,
                    "a version of an unknown log is found")
                try writing.remove(versions[1].reference)
                findings.expect(try writing.liveVersionCount() == 3, "the count is wrong")
            }
        },
        SyncLedgerContract("Live versions are listed page by page in ascending order of reference") {
            store, findings throws(KeychainFailure) in
            var versions: [LiveVersion] = []
            for id in 0..<60 as Range<UInt64> {
                // Numbers that a signed integer would order wrongly.
                for number in [1, .max, 1 << 63, 2] as [UInt64] {
                    versions.append(SampleVersions.live(id % 20, origin: SampleVersions.origin(id, number: number), name: id))
                }
                if id < 20 { versions.append(SampleVersions.live(id, origin: nil, name: id)) }
            }
            let sorted = versions.sorted { $0.reference < $1.reference }
            try store.changeLedger { writing throws(KeychainFailure) in
                for version in versions.shuffled() { try writing.insert(version) }
            }
            for limit in [1, 7, 1_000] {
                try store.readLedger { reading throws(KeychainFailure) in
                    var found: [LiveVersion] = []
                    while true {
                        let page = try reading.liveVersions(after: found.last?.reference, limit: limit)
                        guard !page.isEmpty, found.count < 1_000 else { break }
                        findings.expect(page.count <= limit, "a page is too long")
                        found += page
                    }
                    findings.expect(found == sorted, "pages of \(limit): \(found.count) versions, or another order")
                }
            }
        },
        SyncLedgerContract("A replaced version takes its new reference, item, and digest") { store, findings throws(KeychainFailure) in
            let old = SampleVersions.live(1, origin: nil, name: 1, date: nil, digest: nil, item: .random())
            let new = SampleVersions.live(1, origin: SampleVersions.origin(1), name: 1)
            let other = SampleVersions.live(2, origin: nil, name: 1)
            try store.changeLedger { writing throws(KeychainFailure) in
                try writing.insert(old)
                try writing.insert(other)
                try writing.replace(old.reference, with: new)
                findings.expect(try writing.liveVersion(old.reference) == nil, "the old reference is found")
                findings.expect(try writing.liveVersion(new.reference) == new, "the new version is not found")
                findings.expect(
                    try old.item.map { item throws(KeychainFailure) in try writing.liveVersion(shownBy: item) } == .some(nil),
                    "its former item is found")
                findings.expectFailure(.duplicateItem, "a replacement by another version") { () throws(KeychainFailure) in
                    try writing.replace(new.reference, with: other)
                }
                findings.expect(try writing.liveVersionCount() == 2, "the count changed")
            }
        },
        SyncLedgerContract("Pending versions are listed by lane and by name, oldest first") { store, findings throws(KeychainFailure) in
            let versions = (1...9).map { (number: UInt64) in
                PendingVersion(
                    id: SampleVersions.id(100 - number), name: SampleVersions.name(number % 2),
                    lane: number % 3 == 0 ? .afterFirstUnlock : .whenUnlocked, isDeletion: number % 3 == 0,
                    replaced: (0..<number).map {
                        VersionReference(id: SampleVersions.id($0), origin: $0 == 0 ? nil : SampleVersions.origin($0, number: .max))
                    })
            }
            try store.changeLedger { writing throws(KeychainFailure) in
                for version in versions { try writing.insert(version) }
                findings.expect(try writing.pendingVersionCount() == versions.count, "the count")
                for lane in [Lane.whenUnlocked, .afterFirstUnlock] {
                    let expected = versions.filter { $0.lane == lane }
                    findings.expect(try writing.pendingVersions(in: lane, limit: 100) == expected, "the versions of \(lane)")
                    findings.expect(
                        try writing.pendingVersions(in: lane, limit: 2) == Array(expected.prefix(2)), "the first two of \(lane)")
                }
                let named = versions.filter { $0.name == versions[0].name }
                findings.expect(try writing.pendingVersions(named: versions[0].name) == named, "the versions of a name")
                findings.expect(try writing.pendingVersion(versions[4].id) == versions[4], "a version by its identifier")
                findings.expectFailure(.duplicateItem, "a second one with the identifier") { () throws(KeychainFailure) in
                    try writing.insert(versions[4])
                }
                // The last one leaves its place, which a later one must not take before others.
                for version in [versions[8], versions[0], versions[0]] { try writing.removePending(version.id) }
                try writing.insert(versions[0])
                findings.expect(
                    try writing.pendingVersions(in: .whenUnlocked, limit: 100).map(\.id).last == versions[0].id, "the last is not last")
                findings.expect(try writing.pendingVersion(versions[8].id) == nil, "a removed version is found")
            }
        },
    ]

    private static let logRules = [
        SyncLedgerContract("A read batch is known by log, number, and hash") { store, findings throws(KeychainFailure) in
            let batches = [(1, 1), (1, 2), (1, UInt64.max), (1, 1 << 63), (2, 1)].flatMap { (log: UInt64, number: UInt64) in
                (0..<2).map { _ in SampleVersions.batch(log, number: number) }
            }
            try store.changeLedger { writing throws(KeychainFailure) in
                for batch in batches.shuffled() + batches { try writing.insert(batch) }
                for batch in batches { findings.expect(try writing.isRead(batch.origin), "\(batch) is unknown") }
                findings.expect(try !writing.isRead(SampleVersions.batch(1, number: 1).origin), "a batch of another hash is known")
                findings.expect(try !writing.isRead(SampleVersions.batch(3, number: 1).origin), "a batch of another log is known")
                for batch in batches {
                    findings.expect(try writing.isAnyRead(batch.number, of: batch.log), "no batch like \(batch) is known")
                }
                findings.expect(try !writing.isAnyRead(3, of: SampleVersions.log(1)), "a batch of another number is known")
                findings.expect(try !writing.isAnyRead(1, of: SampleVersions.log(3)), "a batch with this number is known in another log")
                for log in [SampleVersions.log(1), SampleVersions.log(2), SampleVersions.log(3)] {
                    findings.expect(
                        try writing.readBatches(of: log) == batches.filter { $0.log == log }.sorted(),
                        "the batches of \(log), or their order")
                }
            }
        },
        SyncLedgerContract("Marks of a log are kept by origin, and a log is known by its batches and marks") {
            store, findings throws(KeychainFailure) in
            let marks = [5, 2, UInt64.max].map { SampleVersions.mark(4, number: $0) }
            try store.changeLedger { writing throws(KeychainFailure) in
                // A log that only an awaited version names is not known.
                try writing.insertAwaited(VersionReference(id: SampleVersions.id(1), origin: SampleVersions.origin(8)))
                try writing.insert(SampleVersions.batch(2, number: 1))
                for mark in marks + marks { try writing.insert(mark, isToReport: false) }
                findings.expect(try writing.logs() == [SampleVersions.log(2), SampleVersions.log(4)].sorted(), "the logs")
                findings.expect(try writing.marks(of: marks[0].log) == [marks[1], marks[0], marks[2]], "the marks, or their order")
                let changed = LogMark(
                    log: marks[0].log, device: marks[0].device, number: marks[0].number, previous: marks[0].previous, hash: marks[0].hash,
                    signature: SampleVersions.bytes(64))
                try writing.insert(changed, isToReport: false)
                findings.expect(try writing.mark(changed.origin) == changed, "the mark of an origin")
                findings.expect(try writing.mark(SampleVersions.origin(4, number: 7)) == nil, "a mark of another number")
                for _ in 0..<2 { try writing.removeMark(marks[2].origin) }
                findings.expect(try writing.mark(marks[2].origin) == nil, "a removed mark")
                findings.expect(try writing.marks(of: marks[0].log) == [marks[1], changed], "a replaced and a removed mark")
                findings.expect(try writing.marks(of: SampleVersions.log(2)).isEmpty, "a log without marks")
            }
        },
        SyncLedgerContract(
            "Marks to report are given in the order in which they were stored, until they are reported, replaced, or removed"
        ) {
            store, findings throws(KeychainFailure) in
            let device = DeviceID(.random())
            let marks = [9, 3, 7, UInt64.max, 5].map { SampleVersions.mark(4, number: $0, device: device) }
            try store.changeLedger { writing throws(KeychainFailure) in
                for mark in marks { try writing.insert(mark, isToReport: mark != marks[2]) }
                findings.expect(
                    try writing.marksToReport(of: device, limit: 9) == [marks[0], marks[1], marks[3], marks[4]], "the marks, or their order"
                )
                try writing.insert(marks[0], isToReport: true)
                try writing.insert(marks[2], isToReport: true)
                try writing.insert(marks[4], isToReport: false)
                for _ in 0..<2 { try writing.noteReported(marks[1].origin) }
                findings.expect(
                    try writing.marksToReport(of: device, limit: 9) == [marks[3], marks[0], marks[2]], "the marks after changes")
                findings.expect(try writing.marksToReport(of: device, limit: 2) == [marks[3], marks[0]], "the first marks")
                try writing.removeMark(marks[0].origin)
                findings.expect(try writing.marksToReport(of: device, limit: 9) == [marks[3], marks[2]], "the marks after a removal")
                findings.expect(try writing.marksToReport(of: DeviceID(.random()), limit: 9).isEmpty, "marks of another device")
                findings.expect(try writing.marks(of: marks[0].log).count == 4, "the marks of the log")
            }
        },
        SyncLedgerContract("A batch is permitted until that is forgotten") { store, findings throws(KeychainFailure) in
            let origins = (0..<9).map { (number: UInt64) in SampleVersions.origin(number % 3, number: (number / 3) << 62) }
            try store.changeLedger { writing throws(KeychainFailure) in
                for origin in origins.dropLast() + origins.dropLast() { try writing.insertPermitted(origin) }
                for _ in 0..<2 { try writing.removePermitted(origins[0]) }
                for origin in origins {
                    findings.expect(try writing.isPermitted(origin) == (origin != origins[0] && origin != origins[8]), "\(origin)")
                }
                findings.expect(try writing.logs().isEmpty, "a log is known without a batch")
            }
        },
        SyncLedgerContract("Awaited versions are kept until their batch is read") { store, findings throws(KeychainFailure) in
            let references = (0..<30).map { (number: UInt64) in
                VersionReference(id: SampleVersions.id(number % 7), origin: SampleVersions.origin(number % 3, number: number % 5))
            }
            let distinct = Set(references).sorted()
            try store.changeLedger { writing throws(KeychainFailure) in
                for reference in references.shuffled() { try writing.insertAwaited(reference) }
                var found: [VersionReference] = []
                while found.count < 100 {
                    let page = try writing.awaitedVersions(after: found.last, limit: 4)
                    if page.isEmpty { break }
                    found += page
                }
                findings.expect(found == distinct, "the awaited versions, or their order")
                guard let origin = distinct.first?.origin else { return }
                try writing.removeAwaited(origin)
                for reference in distinct {
                    findings.expect(try writing.isAwaited(reference) == (reference.origin != origin), "\(reference)")
                }
            }
        },
    ]

    private static let objectRules = [
        SyncLedgerContract("Settings are stored, replaced, and removed") { store, findings throws(KeychainFailure) in
            try store.changeLedger { writing throws(KeychainFailure) in
                for (number, key) in SyncSetting.allCases.enumerated() { try writing.set(key, to: [UInt8(number)]) }
                try writing.set(.membership, to: [])
                try writing.set(.waits, to: nil)
            }
            try store.readLedger { reading throws(KeychainFailure) in
                for (number, key) in SyncSetting.allCases.enumerated() {
                    let expected: [UInt8]? = key == .membership ? [] : key == .waits ? nil : [UInt8(number)]
                    findings.expect(try reading.setting(key) == expected, "\(key)")
                }
            }
        },
        SyncLedgerContract("Outgoing objects keep their order, and are added once") { store, findings throws(KeychainFailure) in
            let objects = (1...5).map { OutgoingObject(name: "b/\($0)", bytes: SampleVersions.bytes($0 * 10_000)) }
            try store.changeLedger { writing throws(KeychainFailure) in
                for object in objects { try writing.insert(object) }
                try writing.insert(OutgoingObject(name: objects[1].name, bytes: [1]))
                findings.expect(try writing.outgoingNames() == objects.map(\.name), "the objects, or their order")
                for object in objects { findings.expect(try writing.outgoingBytes(object.name) == object.bytes, "\(object.name)") }
                for name in [objects[4].name, objects[0].name, "b/unknown"] { try writing.removeOutgoing(name) }
                try writing.insert(objects[0])
                findings.expect(try writing.outgoingNames() == (objects[1...3] + [objects[0]]).map(\.name), "the rest")
                findings.expect(try writing.outgoingBytes(objects[4].name) == nil, "a removed object")
            }
        },
        SyncLedgerContract("Statements are listed in ascending order of hash") { store, findings throws(KeychainFailure) in
            let statements = (1...9).map { StoredStatement(hash: SampleVersions.hash(), bytes: SampleVersions.bytes($0 * 100)) }
            try store.changeLedger { writing throws(KeychainFailure) in
                for statement in statements + statements.reversed() { try writing.insert(statement) }
            }
            let found = try store.readLedger { reading throws(KeychainFailure) in try reading.statements() }
            findings.expect(found == statements.sorted { $0.hash < $1.hash }, "the statements, or their order")
        },
        SyncLedgerContract("A transaction that fails changes nothing in the ledger") { store, findings throws(KeychainFailure) in
            let version = SampleVersions.live(1, origin: SampleVersions.origin(1), name: 1)
            findings.expectFailure(.decode, "a failing write") { () throws(KeychainFailure) in
                try store.changeLedger { writing throws(KeychainFailure) in
                    try writing.insert(version)
                    try writing.set(.waits, to: [1])
                    try writing.insert(SampleVersions.batch(1, number: 1))
                    throw KeychainFailure(.decode, "thrown by the body")
                }
            }
            try store.changeLedger { writing throws(KeychainFailure) in
                findings.expect(try writing.liveVersionCount() == 0, "a version is counted")
                findings.expect(try writing.liveVersion(version.reference) == nil, "a version remains")
                findings.expect(try writing.setting(.waits) == nil, "a setting remains")
                findings.expect(try writing.logs().isEmpty, "a batch remains")
            }
            if case .written = try store.writeLedger(ifKeybagGeneration: ItemStoreContract.keybag.generation + 1, { _ in }) {
                findings.expect(false, "a write for another keybag was accepted")
            }
        },
        SyncLedgerContract("Nothing is missing in a ledger that is not damaged") { store, findings throws(KeychainFailure) in
            try store.changeLedger { writing throws(KeychainFailure) in
                findings.expect(try !writing.mayLackRecords(), "records are said to be missing")
            }
        },
        SyncLedgerContract("A row is recorded whose revision is not that of the version that it shows") {
            store, findings throws(KeychainFailure) in
            let rows = (1...4).map { SampleRows.row(account: UInt64($0), isSynchronizable: $0 < 4) }
            try store.insert(rows)
            try store.changeLedger { writing throws(KeychainFailure) in
                for row in rows { try writing.eraseRecordedChange(row.header.reference.id) }
                for (row, id) in zip(rows, [SyncVersionID(rows[0].header.revision), SampleVersions.id(1)]) {
                    try writing.insert(
                        LiveVersion(
                            reference: VersionReference(id: id, origin: nil), name: SampleVersions.name(1), lane: .whenUnlocked, date: 1,
                            contentDigest: nil, item: row.header.reference.id))
                }
                findings.expect(try writing.recordUnknownRows() == 2, "another number of rows")
                let found = try writing.recordedChanges(.written, limit: 10).map(\.item)
                findings.expect(Set(found) == Set(rows[1...2].map(\.header.reference.id)), "other rows")
                findings.expect(try writing.recordUnknownRows() == 0, "a row is recorded twice")
            }
        },
    ]

    private static let copyRules = [
        SyncLedgerContract("A conflict copy is kept under its reference, and no search finds it") {
            store, findings throws(KeychainFailure) in
            let row = SampleRows.row(account: 1, attributes: [AttributeDigest(.label, SampleRows.digest(5))], secretByteCount: 9_000)
            let reference = VersionReference(id: SampleVersions.id(1), origin: nil)
            let published = VersionReference(id: SampleVersions.id(1), origin: SampleVersions.origin(1))
            try store.insert([row])
            try store.changeLedger { writing throws(KeychainFailure) in
                try writing.insertCopy(row, of: reference, at: 7.5)
                findings.expectFailure(.duplicateItem, "a second copy of the version") { () throws(KeychainFailure) in
                    try writing.insertCopy(row, of: reference, at: 7.5)
                }
                findings.expect(try writing.copy(of: reference)?.unnumbered == row, "the copy differs")
                findings.expect(try writing.rows().map(\.unnumbered) == [row], "a search finds the copy")
                findings.expect(try writing.itemCount() == 1, "the copy is counted")
                try writing.renameCopy(reference, to: published)
                try writing.renameCopy(reference, to: published)
                findings.expect(try writing.copy(of: reference) == nil, "found by its former reference")
                findings.expect(try writing.copy(of: published)?.unnumbered == row, "not found by its new reference")
                for _ in 0..<2 { try writing.removeCopy(of: published) }
                findings.expect(try writing.copy(of: published) == nil, "a removed copy is found")
                findings.expect(try writing.rows().map(\.unnumbered) == [row], "the item was removed with the copy")
            }
        },
        SyncLedgerContract("The row of an item becomes a conflict copy as it is") { store, findings throws(KeychainFailure) in
            let row = SampleRows.row(account: 1, isSynchronizable: true)
            let reference = VersionReference(id: SyncVersionID(row.header.revision), origin: SampleVersions.origin(1))
            try store.insert([row])
            try store.changeLedger { writing throws(KeychainFailure) in
                let number = try writing.rows().first?.number ?? 0
                try writing.copyRow(number: number, toCopyOf: reference, at: 1)
                findings.expect(try writing.rows().map(\.unnumbered) == [row], "the item changed")
                try writing.remove(number: number)
                findings.expect(try writing.copy(of: reference)?.unnumbered == row, "the copy differs")
            }
        },
        SyncLedgerContract("Conflict copies are resealed with the rows, after them, and their class keys are in use") {
            store, findings throws(KeychainFailure) in
            let row = SampleRows.row(account: 1, accessibility: .whenUnlocked, generation: 1)
            let copies = (0..<3).map { _ in SampleRows.row(account: 1, accessibility: .afterFirstUnlock, generation: 2) }
            let references = (1...3).map { VersionReference(id: SampleVersions.id($0), origin: nil) }
            try store.insert([row])
            try store.changeLedger { writing throws(KeychainFailure) in
                for (copy, reference) in zip(copies, references) { try writing.insertCopy(copy, of: reference, at: 1) }
            }
            try store.change { writing throws(KeychainFailure) in
                findings.expect(
                    try writing.classKeysInUse()
                        == [ClassKeyID(.whenUnlocked, generation: 1), ClassKeyID(.afterFirstUnlock, generation: 2)],
                    "the class keys in use")
                findings.expect(try writing.rowCount(underPasscodeKeysBelow: 3) == 4, "the number of old rows")
                var last: Int64 = 0
                var count = 0
                while count < 10 {
                    var isFound = false
                    try writing.forEachRow(underPasscodeKeysBelow: 3, after: last) { old throws(KeychainFailure) in
                        isFound = true
                        count += 1
                        findings.expect((old.number ?? 0) > last, "the numbers do not increase")
                        findings.expect(old.unnumbered == (count == 1 ? row : copies[count - 2]), "row \(count)")
                        last = old.number ?? 0
                        var renewed = old
                        renewed.header.classKeyGeneration = 3
                        try writing.replace(number: last, with: renewed)
                        return .stop
                    }
                    if !isFound { break }
                }
                findings.expect(count == 4, "\(count) rows were listed")
                findings.expect(try writing.rowCount(underPasscodeKeysBelow: 3) == 0, "old rows remain")
            }
            try store.readLedger { reading throws(KeychainFailure) in
                for (copy, reference) in zip(copies, references) {
                    var expected = copy
                    expected.header.classKeyGeneration = 3
                    findings.expect(try reading.copy(of: reference)?.unnumbered == expected, "a copy changed otherwise")
                }
                findings.expect(try reading.recordedChanges(.written, limit: 10).isEmpty, "resealing is recorded")
            }
        },
    ]
}

/// Values for tests of ledgers; equal numbers give equal identifiers, and other parts are random.
package enum SampleVersions {
    package static func id(_ number: UInt64) -> SyncVersionID { SyncVersionID(identifier(number)) }
    package static func log(_ number: UInt64) -> LogID { LogID(identifier(1_000 + number)) }
    package static func name(_ number: UInt64) -> ItemName { ItemName(identifier(2_000 + number)) }

    /// Returns the origin that these numbers determine.
    package static func origin(_ log: UInt64, number: UInt64 = 1) -> Origin {
        Origin(log: self.log(log), number: number, hash: identifier(log ^ number))
    }

    package static func live(
        _ id: UInt64, origin: Origin?, name: UInt64, date: Double? = 12.5, digest: Identifier128? = .random(), item: ItemID? = nil
    ) -> LiveVersion {
        LiveVersion(
            reference: VersionReference(id: self.id(id), origin: origin), name: self.name(name), lane: .whenUnlocked, date: date,
            contentDigest: digest, item: item)
    }

    package static func batch(_ log: UInt64, number: UInt64) -> ReadBatch {
        ReadBatch(log: self.log(log), device: DeviceID(.random()), number: number, hash: hash(), versionCount: 3)
    }

    package static func mark(_ log: UInt64, number: UInt64, device: DeviceID = DeviceID(.random())) -> LogMark {
        LogMark(
            log: self.log(log), device: device, number: number, previous: hash(), hash: hash(), signature: bytes(64))
    }

    package static func hash() -> ObjectHash { ObjectHash(prefix: .random(), suffix: .random()) }

    package static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }

    /// Identifiers whose order is not that of their numbers.
    private static func identifier(_ number: UInt64) -> Identifier128 {
        Identifier128(high: number &* 0x9E37_79B9_7F4A_7C15, low: ~number)
    }
}
#endif
