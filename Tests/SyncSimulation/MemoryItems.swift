// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The content of a simulated item.
package struct SimulatedContent: Hashable, Sendable {
    package var name: Int
    package var accessibility: ItemAccessibility
    package var date: Double
    package var value: UInt64

    package init(name: Int, accessibility: ItemAccessibility, date: Double, value: UInt64) {
        self.name = name
        self.accessibility = accessibility
        self.date = date
        self.value = value
    }

    package var itemName: ItemName { Self.itemName(of: name) }

    package static func itemName(of name: Int) -> ItemName { ItemName(Identifier128(high: 1, low: UInt64(name))) }

    package var content: SyncContent {
        var attributes: [UInt8] = []
        attributes.append(littleEndian: UInt64(name))
        attributes.append(littleEndian: date.bitPattern)
        var secret: [UInt8] = []
        secret.append(littleEndian: value)
        return SyncContent(itemClass: .genericPassword, accessibility: accessibility, attributes: attributes, secret: secret)
    }

    package init?(_ content: SyncContent) {
        var reader = ByteReader(content.attributes)
        guard let name = reader.readUInt64(), let date = reader.readUInt64(), reader.isAtEnd else { return nil }
        var secret = ByteReader(content.secret ?? [])
        guard let value = secret.readUInt64(), name < 1_000_000 else { return nil }
        self.init(name: Int(name), accessibility: content.accessibility, date: Double(bitPattern: date), value: value)
    }

    // A date that is not finite is left to the engine, to prove that it checks.
    var summary: ContentSummary? {
        guard let lane = Lane(accessibility) else { return nil }
        return ContentSummary(
            name: itemName, lane: lane, date: date, contentDigest: Identifier128(high: UInt64(accessibility.code), low: value))
    }
}

extension MemoryLedger: SyncItemWriting {
    package func isAvailable(_ lane: Lane) -> Bool { !state.lockedLanes.contains(lane) }

    package func localItem(_ item: ItemID) -> LocalItem? {
        guard let row = state.rows[item], row.isSynchronizable else { return nil }
        return LocalItem(
            item: item, name: row.content.itemName, lane: Lane(row.content.accessibility), revision: row.revision)
    }

    package func summary(of item: ItemID) throws(KeychainFailure) -> ContentSummary? {
        guard let row = state.rows[item], row.isReadable else { return nil }
        try requireAvailable(row.content.accessibility)
        return row.content.summary
    }

    package func content(of version: LiveVersion) throws(KeychainFailure) -> SyncContent? {
        if let item = version.item {
            guard let row = state.rows[item], row.isReadable, row.revision == version.reference.id else { return nil }
            try requireAvailable(row.content.accessibility)
            return row.content.content
        }
        guard let copy = state.copies[version.reference] else { return nil }
        try requireAvailable(copy.accessibility)
        return copy
    }

    package func summary(of content: SyncContent) -> ContentSummary? { SimulatedContent(content)?.summary }

    package func addCopy(_ content: SyncContent, of version: LiveVersion) throws(KeychainFailure) {
        try requireAvailable(content.accessibility)
        state.copies[version.reference] = content
    }

    package func removeCopy(of reference: VersionReference) { state.copies[reference] = nil }

    package func renameCopy(_ reference: VersionReference, to other: VersionReference) {
        state.copies[other] = state.copies.removeValue(forKey: reference)
    }

    package func moveToCopy(_ item: ItemID, of version: LiveVersion) throws(KeychainFailure) {
        guard let row = state.rows[item], row.isReadable else { throw KeychainFailure(.internal, "the shown row is missing") }
        try requireAvailable(row.content.accessibility)
        state.copies[version.reference] = row.content.content
    }

    package func show(_ content: SyncContent, of version: LiveVersion, in item: ItemID?) throws(KeychainFailure) -> Placement {
        try requireAvailable(content.accessibility)
        guard let simulated = SimulatedContent(content) else { throw KeychainFailure(.internal, "not a simulated item") }
        let row = item ?? newItem()
        if state.rows[row]?.isNewer == true { return .leftAlone }
        if let (other, inTheWay) = state.rows.first(where: { $0.key != row && $0.value.isShared(as: simulated.name) }) {
            if inTheWay.isNewer || inTheWay.content.accessibility.isThisDeviceOnly { return .leftAlone }
            guard inTheWay.isDamaged else { throw KeychainFailure(.duplicateItem, "another row has this name") }
            state.rows[other] = nil
        }
        state.rows[row] = Row(content: simulated, revision: version.reference.id)
        return .shown(row)
    }

    package func removeItem(_ item: ItemID) { state.rows[item] = nil }

    func newItem() -> ItemID {
        state.itemCount += 1
        return Identifier128(high: SeededGenerator.mix(state.itemCount), low: state.itemCount)
    }

    private func requireAvailable(_ accessibility: ItemAccessibility) throws(KeychainFailure) {
        guard let lane = Lane(accessibility), state.lockedLanes.contains(lane) else { return }
        throw KeychainFailure(.interactionNotAllowed, "the class is locked")
    }
}
