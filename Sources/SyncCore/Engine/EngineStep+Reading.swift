// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Listings, and the choice of what to read.
extension EngineStep {
    /// The limit of the names that a listing may have.
    private static let largestListing = 1_000_000

    mutating func noteListing(_ folder: ObjectName.Folder, _ names: [String]) throws(KeychainFailure) {
        let parsed = names.prefix(Self.largestListing).compactMap { ObjectName($0) }
        engine.memory.listedFolders.insert(folder)
        engine.memory.areCheckpointsDue = true
        engine.memory.rejected = []
        switch folder {
        case .statements:
            engine.memory.listedStatements = Set(
                parsed.compactMap { name in if case .statement(let hash) = name { hash } else { nil } })
            try restoreStatements()
            try boxMissingKeys()
        case .batches:
            engine.memory.listedBatches = Set(
                parsed.compactMap { name in
                    if case .batch(let device, let origin) = name { ListedBatch(device: device, origin: origin) } else { nil }
                }
            ).sorted()
            engine.memory.withoutKey = []
            engine.memory.waiting = [:]
            engine.memory.maySeal = true
        case .checkpoints:
            engine.memory.listedCheckpoints = Set(
                parsed.compactMap { name in if case .checkpoint(let hash) = name { hash } else { nil } }
            ).sorted()
        case .pieces:
            engine.memory.listedPieces = Set(
                parsed.compactMap { name in if case .piece(let hash) = name { hash } else { nil } })
        case .joinMessages: break
        }
    }

    /// Asks for the objects that are listed and can be used now.
    mutating func requestReads() {
        var names: [(String, Int)] = []
        for hash in engine.memory.listedStatements.sorted() where engine.memory.statements[hash] == nil {
            names.append((ObjectName.statement(hash).text, Statement.largestByteCount))
        }
        names += neededCheckpointObjects()
        if isFolded {
            for batch in engine.memory.listedBatches where isReadable(batch) { names.append((batch.name, BatchFrame.largestByteCount)) }
        }
        for (name, limit) in names {
            guard engine.memory.reading.count < limits.concurrentReads else { return }
            guard !isSetAside(name) else { continue }
            if engine.memory.reading.insert(name).inserted { effects.append(.read(name, atMost: limit)) }
        }
    }

    /// Returns whether reading an object again is of no use before something changes.
    func isSetAside(_ name: String) -> Bool { engine.memory.rejected.contains(name) || engine.memory.withoutKey.contains(name) }

    func isRead(_ origin: Origin) -> Bool { (try? ledger.isRead(origin)) ?? false }

    /// Returns whether a listed batch can be read next: its predecessor was read, and its author is, or was, permitted to write.
    func isReadable(_ batch: ListedBatch) -> Bool {
        guard !isRead(batch.origin), !isWaiting(batch) else { return false }
        // What the checkpoint covers is not read one by one.
        if let absorption = engine.memory.absorption, absorption.covers(batch.origin) { return false }
        guard mayRead(batch.device, batch.origin) else { return false }
        return batch.origin.number == 1 || isPlanted(.chainNotChecked) || isAnyRead(batch.origin.log, batch.origin.number - 1)
            || isOfRemovedDevice(batch.device)
    }

    private func isWaiting(_ batch: ListedBatch) -> Bool {
        engine.memory.waiting.values.contains { $0.contains(batch.name) }
    }

    private func isAnyRead(_ log: LogID, _ number: UInt64) -> Bool {
        ((try? ledger.readBatches(of: log)) ?? []).contains { $0.number == number }
    }

    func isOfRemovedDevice(_ device: DeviceID) -> Bool { roster.removed.contains(device) }

    /// Returns whether batches of a device count: of writers, and of removed devices as far as remaining devices have read them.
    func mayRead(_ author: DeviceID, _ origin: Origin) -> Bool {
        if let member = roster.members[author] { return member.role.mayWrite || isPlanted(.readersMayWrite) }
        guard isOfRemovedDevice(author), roster.publicKeys[author] != nil else { return false }
        return isPlanted(.removedLogGoesOn) || permittedOrigins.contains(origin)
    }

    /// The unread batches of removed devices that a remaining device has read.
    var permittedOrigins: Set<Origin> {
        guard let bytes = try? ledger.setting(.removals), let origins = try? StoredList.origins(bytes) else { return [] }
        return Set(origins)
    }

    mutating func permit(_ origin: Origin) throws(KeychainFailure) {
        var origins = permittedOrigins
        guard origins.insert(origin).inserted else { return }
        try ledger.set(.removals, to: StoredList.encoded(origins.sorted()))
    }

    /// Forgets a permission once the batch was read.
    func withdrawPermission(_ origin: Origin) throws(KeychainFailure) {
        var origins = permittedOrigins
        guard origins.remove(origin) != nil else { return }
        try ledger.set(.removals, to: origins.isEmpty ? nil : StoredList.encoded(origins.sorted()))
    }

    mutating func receive(_ name: String, _ bytes: [UInt8]) throws(KeychainFailure) {
        switch ObjectName(name) {
        case .statement(let hash): try receiveStatement(hash, bytes, name: name)
        case .batch(let device, let origin):
            try receiveBatch(device, origin, bytes, name: name)
            if !isRead(origin), !isWaiting(ListedBatch(device: device, origin: origin)) { engine.memory.rejected.insert(name) }
        case .checkpoint(let hash):
            engine.memory.areCheckpointsDue = true
            try receiveCheckpoint(hash, bytes, name: name)
        case .piece(let hash):
            engine.memory.areCheckpointsDue = true
            if try !receivePiece(hash, bytes) { engine.memory.rejected.insert(name) }
        case .joinMessage, nil: break
        }
    }
}
