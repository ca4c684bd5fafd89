// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The ledger and the items of one transaction.
package struct SyncTransaction {
    package let ledger: any SyncWriting
    package let items: any SyncItemWriting

    package init(ledger: any SyncWriting, items: any SyncItemWriting) {
        self.ledger = ledger
        self.items = items
    }
}

/// Applies versions to the ledger within one transaction.
///
/// The state of an item is the set of published versions that no published version replaces. Neither clocks nor the order of arrival decide
/// what is in the set; a clock only decides which of its versions is visible. `settle` then makes the rows show the visible versions.
struct Merge {
    let ledger: any SyncWriting
    let items: any SyncItemWriting
    /// Whether local writes are sent.
    ///
    /// Those of a reader stay on its device, in versions without an origin that are never shown in place of the circle's.
    var sharesWrites = true
    /// The versions that this device showed when it last left this circle; see `FormerVersions`.
    ///
    /// A row with one of them is folded as a version that is not sent.
    var former: [SyncVersionID: Origin] = [:]
    /// Live versions whose contents were found to be lost, and that the circle has.
    private(set) var lost: Set<VersionReference> = []
    /// Items whose rows are of a newer format.
    private(set) var leftAlone: Set<ItemName> = []
    private(set) var observations: [SyncObservation] = []
    private var touched: [ItemName: Touched] = [:]

    private struct Touched {
        /// The row that shows the item, or that showed a version which was removed.
        var item: ItemID?
        /// The contents that are not stored yet.
        var contents: [VersionReference: SyncContent] = [:]
    }

    init(_ transaction: SyncTransaction) {
        ledger = transaction.ledger
        items = transaction.items
    }

    mutating func observe(_ observation: SyncObservation) { observations.append(observation) }

    /// Returns whether the batch was read, or an absorbed checkpoint lists its hash.
    func isCovered(_ origin: Origin) throws(KeychainFailure) -> Bool {
        if isPlanted(.coverageWithoutHash) {
            return try ledger.readBatches(of: origin.log).contains { $0.number >= origin.number }
        }
        return try ledger.isRead(origin)
    }

    /// Applies a version of a batch.
    ///
    /// The caller remembers the batch as read afterwards.
    ///
    /// `summary` describes the content; nil for a deletion.
    mutating func apply(_ record: VersionRecord, at origin: Origin, _ summary: ContentSummary?) throws(KeychainFailure) {
        for reference in record.replaced {
            try removeLive(reference)
            try remember(reference)
        }
        let reference = VersionReference(id: record.id, origin: origin)
        if let content = record.content, let summary { try addUnlessReplaced(reference, content, summary) }
    }

    /// Adds a version unless it is live, or known to be replaced.
    mutating func addUnlessReplaced(
        _ reference: VersionReference, _ content: SyncContent, _ summary: ContentSummary
    ) throws(KeychainFailure) {
        guard try !ledger.isAwaited(reference) else {
            // A former version is replaced with it.
            if former[reference.id] != nil { touch(summary.name) }
            return observe(.ignoredAwaitedVersion)
        }
        guard try ledger.liveVersion(reference) == nil else { return }
        if isPlanted(.versionNamedByID), try ledger.liveVersions(named: summary.name).contains(where: { $0.reference.id == reference.id }) {
            return
        }
        if isPlanted(.clockDecides), try ledger.liveVersions(named: summary.name).contains(where: { ($0.date ?? 0) > summary.date + 100 }) {
            return
        }
        try ledger.insert(
            LiveVersion(
                reference: reference, name: summary.name, lane: summary.lane, date: summary.date, contentDigest: summary.contentDigest,
                item: nil))
        touched[summary.name, default: Touched()].contents[reference] = content
    }

    /// Remembers that a version is replaced, until its own batch is covered.
    func remember(_ reference: VersionReference) throws(KeychainFailure) {
        guard let origin = reference.origin, !isPlanted(.awaitedNotRemembered), try !isCovered(origin) else { return }
        try ledger.insertAwaited(reference)
    }

    /// Removes a version from the live ones, if it is there.
    mutating func removeLive(_ reference: VersionReference) throws(KeychainFailure) {
        if isPlanted(.versionNamedByID),
            let other = try ledger.liveVersions(after: nil, limit: 10_000).first(where: { $0.reference.id == reference.id })
        {
            return try remove(other)
        }
        for version in try versions(replacedBy: reference) { try remove(version) }
    }

    /// Returns the live versions that are gone if this one is replaced: it, and a former version, whose batch this device may not have read again.
    func versions(replacedBy reference: VersionReference) throws(KeychainFailure) -> [LiveVersion] {
        var versions = [try ledger.liveVersion(reference)]
        if reference.origin != nil, former[reference.id] != nil {
            versions.append(try ledger.liveVersion(VersionReference(id: reference.id, origin: nil)))
        }
        return versions.compactMap(\.self)
    }

    mutating func remove(_ version: LiveVersion) throws(KeychainFailure) {
        try ledger.remove(version.reference)
        if let item = version.item {
            // The row of another version may be gone without a record, and a program may have added this one under its name.
            let isLost = try items.localItem(item) == nil
            if !isLost || touched[version.name]?.item == nil { touched[version.name, default: Touched()].item = item }
        } else if touched[version.name, default: Touched()].contents.removeValue(forKey: version.reference) == nil {
            try items.removeCopy(of: version.reference)
        }
    }

    /// The items that `settle` has to look at once all local writes are folded.
    ///
    /// Not those whose row shows their only version: programs may have overwritten a million of them.
    func unsettledNames() throws(KeychainFailure) -> [ItemName] {
        var names: [ItemName] = []
        for name in touched.keys.sorted() {
            let live = try ledger.liveVersions(named: name)
            if live.count != 1 || live[0].item == nil || live[0].date == nil { names.append(name) }
        }
        return names
    }

    /// Makes sure that `settle` looks at the items with former versions: a checkpoint may cover them.
    mutating func touchFormer() throws(KeychainFailure) {
        for id in former.keys.sorted() {
            if let version = try ledger.liveVersion(VersionReference(id: id, origin: nil)) { touch(version.name) }
        }
    }

    /// Makes sure that `settle` looks at an item.
    mutating func touch(_ name: ItemName) {
        touched[name] = touched[name] ?? Touched()
    }

    // Showing

    /// Returns the order in which versions become visible: by date, then by reference.
    static func isOrdered(_ left: LiveVersion, before right: LiveVersion) -> Bool {
        // A local write whose date is not known yet was written last.
        let (leftDate, rightDate) = (left.date ?? .infinity, right.date ?? .infinity)
        return leftDate == rightDate ? left.reference < right.reference : leftDate < rightDate
    }

    /// Makes the rows of all touched items show their visible versions, and returns the items for which that has to wait for an unlock.
    mutating func settle() throws(KeychainFailure) -> [ItemName] {
        var waiting: [ItemName] = []
        for name in touched.keys.sorted() {
            guard let entry = touched[name] else { continue }
            if try !settle(name, entry) {
                observe(.waitedForUnlock)
                waiting.append(name)
            }
        }
        touched = [:]
        return waiting
    }

    private mutating func settle(_ name: ItemName, _ entry: Touched) throws(KeychainFailure) -> Bool {
        var live = try ledger.liveVersions(named: name)
        for index in live.indices where try isAbsent(&live[index]) { noteLoss(of: live[index].reference) }
        var entry = entry
        let (row, isDecided) = try removeFormer(from: &live)
        if let row { entry.item = row }
        let shown = live.first { $0.item != nil }
        let shared = sharesWrites ? live : live.filter { $0.reference.origin != nil }
        let visible = shared.max(by: Self.isOrdered) ?? shown
        var isSettled = isDecided
        var isStored: VersionReference?
        if let visible {
            if visible.item == nil {
                if try items.isAvailable(visible.lane), try items.isAvailable(shown?.lane ?? visible.lane) {
                    if try show(visible, insteadOf: shown, in: shown?.item ?? entry.item, entry) { isStored = visible.reference }
                } else {
                    isSettled = false
                    // Absence is shown rather than a value that the circle has replaced.
                    if shown == nil, let item = entry.item { try items.removeItem(item) }
                }
            }
        } else if let item = entry.item {
            try items.removeItem(item)
        }
        for version in live where version.item == nil && version.reference != isStored {
            if let content = entry.contents[version.reference] { try items.addCopy(content, of: version) }
        }
        return isSettled
    }

    /// Whether a version was shown when this device left the circle, and the circle has not shown it since.
    func isFormer(_ version: LiveVersion) -> Bool { version.reference.origin == nil && former[version.reference.id] != nil }

    /// Removes the former versions that the circle has itself or has replaced; returns the row of one, and whether no class was locked.
    ///
    /// These are no conflict. A version whose batch is not covered may never have been read by another device, and stays until a person decides.
    private func removeFormer(from live: inout [LiveVersion]) throws(KeychainFailure) -> (row: ItemID?, isDecided: Bool) {
        guard !former.isEmpty else { return (nil, true) }
        var (row, isDecided): (ItemID?, Bool) = (nil, true)
        for version in live where isFormer(version) {
            let others = live.filter { $0.reference.origin != nil }
            guard let origin = former[version.reference.id], let other = others.max(by: Self.isOrdered),
                try isCovered(origin) || isPlanted(.takesFormerVersionsForReplaced)
                    || others.contains(where: { $0.reference.id == version.reference.id }),
                !isPlanted(.keepsFormerVersions)
            else {
                try noteDate(ofFormer: version, in: &live)
                continue
            }
            guard try items.isAvailable(other.lane), try items.isAvailable(version.lane) else {
                isDecided = false
                continue
            }
            try ledger.remove(version.reference)
            live.removeAll { $0.reference == version.reference }
            if let item = version.item { row = item } else { try items.removeCopy(of: version.reference) }
        }
        return (row, isDecided)
    }

    /// Notes the date of a former version that was folded while its class was locked: it is never sealed, which tells the dates of local writes.
    private func noteDate(ofFormer version: LiveVersion, in live: inout [LiveVersion]) throws(KeychainFailure) {
        guard version.date == nil, let item = version.item, try items.isAvailable(version.lane), let summary = try items.summary(of: item),
            let index = live.firstIndex(where: { $0.reference == version.reference })
        else { return }
        (live[index].date, live[index].contentDigest) = (summary.date, summary.contentDigest)
        try ledger.replace(version.reference, with: live[index])
    }

    /// Shows a version; returns false if the row has to be left alone, or the content cannot be opened.
    private mutating func show(
        _ version: LiveVersion, insteadOf shown: LiveVersion?, in item: ItemID?, _ entry: Touched
    ) throws(KeychainFailure) -> Bool {
        let received = entry.contents[version.reference]
        let stored = received == nil ? try items.content(of: version) : nil
        guard let content = received ?? stored else {
            noteLoss(of: version.reference)
            // As above.
            if shown == nil, let item { try items.removeItem(item) }
            return false
        }
        let isReadable = try shown.map { version throws(KeychainFailure) in try items.content(of: version) != nil } ?? false
        if isReadable, let shown, let item = shown.item {
            try items.moveToCopy(item, of: shown)
            if !sharesWrites { try removeUnsharedCopies(equalTo: shown) }
        }
        guard case .shown(let row) = try items.show(content, of: version, in: item) else {
            leftAlone.insert(version.name)
            return false
        }
        if var shown {
            shown.item = nil
            try ledger.replace(shown.reference, with: shown)
            if !isReadable { noteLoss(of: shown.reference) }
        }
        if received == nil { try items.removeCopy(of: version.reference) }
        var version = version
        version.item = row
        try ledger.replace(version.reference, with: version)
        return true
    }

    // Lost contents

    /// Remembers that this device has lost the content of a version, which its batch or a checkpoint has.
    mutating func noteLoss(of reference: VersionReference) {
        guard reference.origin != nil else { return }
        observe(.lostContent)
        lost.insert(reference)
    }

    /// Returns whether the row of a version is gone, although no program has recorded its deletion.
    ///
    /// A program may have added another row under its name, so the version is not shown in its former row again.
    private func isAbsent(_ version: inout LiveVersion) throws(KeychainFailure) -> Bool {
        guard let item = version.item, try items.localItem(item) == nil else { return false }
        version.item = nil
        try ledger.replace(version.reference, with: version)
        return true
    }

    /// Restores the content of a version; returns false if its row is of a newer format.
    mutating func restore(_ content: SyncContent, of version: LiveVersion) throws(KeychainFailure) -> Bool {
        var version = version
        guard try !isAbsent(&version), let item = version.item else {
            try items.removeCopy(of: version.reference)
            touched[version.name, default: Touched()].contents[version.reference] = content
            return true
        }
        guard case .shown(let row) = try items.show(content, of: version, in: item) else { return false }
        version.item = row
        try ledger.replace(version.reference, with: version)
        return true
    }
}
