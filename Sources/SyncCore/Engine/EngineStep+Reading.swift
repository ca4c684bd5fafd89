// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Listings, and the choice of what to read.
extension EngineStep {
    /// The limit of the names that a listing may have.
    private static let largestListing = 1_000_000
    /// The number of new batches after which the storage is listed, however few there were.
    private static let smallestGrowth = 64

    mutating func noteListing(_ folder: ObjectName.Folder, _ names: [String]) throws(KeychainFailure) {
        let parsed = names.prefix(Self.largestListing).compactMap { ObjectName($0) }
        engine.memory.listedFolders.insert(folder)
        let first = folder.rawValue.utf8.first
        engine.memory.rejected = engine.memory.rejected.filter { $0.utf8.first != first }
        engine.memory.areReadsQueued = false
        switch folder {
        case .statements:
            engine.memory.statementsListedAt = now
            engine.memory.listedStatements = Set(
                parsed.compactMap { name in if case .statement(let hash) = name { hash } else { nil } })
            findUnreadStatements()
            try restoreStatements()
            engine.memory.areKeysDue = true
        case .batches:
            try noteBatches(
                Set(
                    parsed.compactMap { name in
                        if case .batch(let device, let origin) = name { ListedBatch(device: device, origin: origin) } else { nil }
                    }))
            engine.memory.withoutKey = []
            engine.memory.maySeal = true
            engine.memory.areCheckpointsDue = true
        case .checkpoints:
            engine.memory.listedCheckpoints = Set(
                parsed.compactMap { name in if case .checkpoint(let hash) = name { hash } else { nil } }
            ).sorted()
            forgetCheckpoints()
            engine.memory.areCheckpointsDue = true
        case .pieces:
            engine.memory.listedPieces = Set(
                parsed.compactMap { name in if case .piece(let hash) = name { hash } else { nil } })
            try abandonStalledAbsorption()
            engine.memory.areCheckpointsDue = true
        case .joinMessages: effects += try InvitationRecords.clean(listed: names, now: now, in: ledger)
        }
    }

    private mutating func noteBatches(_ listed: Set<ListedBatch>) throws(KeychainFailure) {
        let (listedBefore, unreadBefore) = (Set(engine.memory.listedBatches), engine.memory.unread)
        engine.memory.listedBatches = listed.sorted()
        engine.memory.countAtListing = engine.memory.listedBatches.count
        engine.memory.unread = UnreadBatches()
        for batch in engine.memory.listedBatches {
            // What was read by the last listing is not looked up again.
            if listedBefore.contains(batch), !unreadBefore.contains(batch.origin) { continue }
            try insertUnlessRead(batch)
        }
    }

    private mutating func insertUnlessRead(_ batch: ListedBatch) throws(KeychainFailure) {
        guard try !ledger.isRead(batch.origin) else { return }
        let (log, number) = (batch.origin.log, batch.origin.number)
        let isReachable = number == 1 ? true : try ledger.isAnyRead(number - 1, of: log)
        engine.memory.unread.insert(
            batch, isOwn: batch.device == device, isReachable: isReachable, isPermitted: try ledger.isPermitted(batch.origin))
    }

    /// Notes batches of which the storage has told since the last listing.
    ///
    /// So one change costs each device one read, and no listing of all that others have sent. Whatever else has changed is found by the next listing.
    mutating func noteAppearance(of names: [String]) throws(KeychainFailure) {
        // The first round lists them.
        guard engine.memory.listedFolders.contains(.batches) else { return effects.append(.wake(at: now)) }
        let batches = names.compactMap { name in
            if case .batch(let device, let origin)? = ObjectName(name) { ListedBatch(device: device, origin: origin) } else { nil }
        }
        for batch in addListed(batches) { try insertUnlessRead(batch) }
        // Of a predecessor: without a listing, the rest of the log would wait for it.
        var isHintLost = false
        for batch in batches {
            // It may have been incomplete when it was read.
            engine.memory.rejected.remove(batch.name)
            engine.memory.unread.queue(batch)
            let origin = batch.origin
            if engine.memory.unread.contains(origin), !engine.memory.unread.isReadable(origin),
                !engine.memory.listedBatches.contains(origin.number - 1, of: origin.log)
            {
                isHintLost = true
            }
        }
        if isHintLost { effects.append(.wake(at: now)) }
    }

    /// Adds batches to those of the last listing, and returns those that are new.
    ///
    /// What depends on all that is in the storage, such as whether a checkpoint is due, is decided by a listing, which takes time for each batch
    /// there. So one is due when the batches have grown by a part of their number.
    @discardableResult
    mutating func addListed(_ batches: [ListedBatch]) -> [ListedBatch] {
        let added = engine.memory.listedBatches.merge(Set(batches).sorted())
        guard !added.isEmpty else { return [] }
        let count = engine.memory.listedBatches.count
        let due = engine.memory.countAtListing + max(Self.smallestGrowth, engine.memory.countAtListing / 4)
        if count >= due, count - added.count < due { effects.append(.wake(at: now)) }
        return added
    }

    /// Forgets the checkpoints that are not in the storage any more, except for the one that is being absorbed.
    private mutating func forgetCheckpoints() {
        let kept = Set(engine.memory.listedCheckpoints + [engine.memory.absorption?.hash].compactMap(\.self))
        engine.memory.checkpoints = engine.memory.checkpoints.filter { kept.contains($0.key) }
    }

    /// Asks for the objects that are listed and can be used now.
    mutating func requestReads() throws(KeychainFailure) {
        guard engine.memory.reading.count < limits.concurrentReads else { return }
        while engine.memory.reading.count < limits.concurrentReads, let hash = engine.memory.unreadStatements.popLast() {
            request(ObjectName.statement(hash).text, atMost: Statement.largestByteCount)
        }
        guard areStatementsRead, isFolded else { return }
        queueReads()
        while engine.memory.reading.count < limits.concurrentPieces, let (name, limit) = engine.memory.neededObjects.popLast() {
            if !isSetAside(name) { request(name, atMost: limit) }
        }
        for (name, limit) in try neededContents() {
            guard engine.memory.reading.count < limits.concurrentReads else { return }
            if !isSetAside(name) { request(name, atMost: limit) }
        }
        while engine.memory.reading.count < limits.concurrentReads, let batch = try nextReadableBatch() {
            engine.memory.unread.removeNext()
            request(batch.name, atMost: BatchFrame.largestByteCount)
            try requestSuccessors(of: batch)
        }
    }

    /// Requests the batches that follow one in its log before it has arrived, because each read may take long.
    private mutating func requestSuccessors(of batch: ListedBatch) throws(KeychainFailure) {
        while engine.memory.reading.count < limits.concurrentReads, engine.memory.unread.heldByteCount < limits.heldByteCount,
            let next = engine.memory.unread.next(after: batch)
        {
            guard !isSetAside(next.name), try isWanted(next) else { return }
            request(next.name, atMost: BatchFrame.largestByteCount)
        }
    }

    /// Queues all objects that can be read next, after a listing, and when what was set aside may be of use.
    private mutating func queueReads() {
        guard !engine.memory.areReadsQueued else { return }
        engine.memory.areReadsQueued = true
        engine.memory.neededObjects = neededCheckpointObjects().reversed()
        engine.memory.unread.queueAll()
    }

    /// Whether all statements of this round are read.
    ///
    /// One of them may remove a device that would otherwise be believed, or get a key.
    var areStatementsRead: Bool {
        engine.memory.unreadStatements.isEmpty && engine.memory.receivedStatements.isEmpty && !isReadingStatements
            && engine.memory.listedFolders.contains(.statements)
    }

    private mutating func request(_ name: String, atMost limit: Int) {
        if engine.memory.reading.insert(name).inserted { effects.append(.read(name, atMost: limit)) }
    }

    /// Finds the listed statements that this device does not have, after a listing, and when rejected ones may be of use.
    mutating func findUnreadStatements() {
        let memory = engine.memory
        let unread = memory.listedStatements.filter {
            memory.statements[$0] == nil && memory.receivedStatements[$0] == nil
                && (memory.rejected.isEmpty || !memory.rejected.contains(ObjectName.statement($0).text))
        }
        // In ascending order: the last one is read first.
        engine.memory.unreadStatements = unread.sorted().reversed()
    }

    /// Lets all objects be read again: they may be of use now.
    mutating func setNothingAside() {
        engine.memory.rejected = []
        engine.memory.withoutKey = []
        engine.memory.areReadsQueued = false
    }

    /// Returns whether reading an object again is of no use before something changes.
    func isSetAside(_ name: String) -> Bool { engine.memory.rejected.contains(name) || engine.memory.withoutKey.contains(name) }

    /// Returns the first batch of the queue that can be read: one that is wanted and whose predecessor was read, or one of a former author, whose
    /// predecessors may be lost.
    mutating func nextReadableBatch() throws(KeychainFailure) -> ListedBatch? {
        queueReads()
        while let batch = engine.memory.unread.queue.last {
            if engine.memory.unread.contains(batch.origin), !isSetAside(batch.name), try isWanted(batch) { return batch }
            engine.memory.unread.removeNext()
        }
        return nil
    }

    /// Returns whether an unread batch counts, and does not wait for something else.
    func isWanted(_ batch: ListedBatch) throws(KeychainFailure) -> Bool {
        guard !engine.memory.unread.isWaiting(batch) else { return false }
        // What the checkpoint covers is not read one by one.
        if let absorption = engine.memory.absorption, absorption.covers(batch.origin) { return false }
        return try mayRead(batch.device, batch.origin)
    }

    /// Returns whether batches of a device count: of writers, and of former ones as far as remaining writers have read them.
    private func mayRead(_ author: DeviceID, _ origin: Origin) throws(KeychainFailure) -> Bool {
        if let member = roster.members[author], member.role.mayWrite || isPlanted(.readersMayWrite) { return true }
        guard roster.formerAuthors.contains(author) else { return false }
        return isPlanted(.removedLogGoesOn) ? true : try ledger.isPermitted(origin)
    }

    /// Permits an unread batch of a former author, or of one that is still a member here, that a remaining device has read.
    mutating func permit(_ origin: Origin) throws(KeychainFailure) {
        try ledger.insertPermitted(origin)
        engine.memory.unread.permit(origin)
    }

    /// Remembers a batch as read, or as covered by an absorbed checkpoint.
    mutating func noteRead(_ batch: ReadBatch) throws(KeychainFailure) {
        try ledger.insert(batch)
        try ledger.removeAwaited(batch.origin)
        try ledger.removePermitted(batch.origin)
        engine.memory.unread.noteRead(batch.origin)
    }

    mutating func receive(_ name: String, _ bytes: [UInt8]) throws(KeychainFailure) {
        switch ObjectName(name) {
        case .statement(let hash): try receiveStatement(hash, bytes, name: name)
        case .batch(let device, let origin):
            let batch = ListedBatch(device: device, origin: origin)
            guard try !ledger.isRead(origin) else { return try restoreContents(of: batch, bytes) }
            try receiveBatch(batch, bytes)
        case .checkpoint(let hash): try receiveCheckpoint(hash, bytes, name: name)
        case .piece(let hash):
            if try !receivePiece(hash, bytes) { engine.memory.rejected.insert(name) }
        case .joinMessage, nil: break
        }
    }
}
