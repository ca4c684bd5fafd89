// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// What a person asks for.
extension EngineStep {
    mutating func perform(_ command: SyncCommand) throws(KeychainFailure) {
        switch command {
        case .admit(let keys, let role): try admit(keys, role)
        case .admitRecoveryKit(let kit):
            let code = try cipher.circleCode(circle, recoveryKit: kit)
            try admit(try cipher.deviceKeys(ofRecoveryKit: kit).publicKeys, .recoveryKit, circleCode: code)
        case .admitCredential(let keys, let note): try admit(keys, note)
        case .rename(let name): try ledger.set(.ownName, to: name.utf8)
        case .remove(let subject): try remove(subject)
        case .acceptDeletions:
            let bytes = try ledger.setting(.deletionGuard)
            var count = DeletionCount()
            count.start = now
            // What was asked for may be one batch with more deletions than the guard permits.
            if let bytes { count.confirmed = try stored { () throws(FormatError) in try DeletionCount(bytes) }.asked }
            try ledger.set(.deletionGuard, to: count.encoded)
        case .keep(let name, let reference): try keep(name, reference)
        case .decide(let names, let shares): if shares { try share(names) } else { try discard(names) }
        case .checkContents: try beginContentCheck()
        }
    }

    /// Makes the former versions of items local writes, which the next batches contain.
    private mutating func share(_ names: [ItemName]) throws(KeychainFailure) {
        guard merge.sharesWrites, var former = try FormerVersions(in: ledger) else { return }
        var shared: [SyncVersionID] = []
        for name in names {
            guard let version = try unsharedVersion(named: name) else { continue }
            shared.append(version.reference.id)
            try ledger.insert(
                PendingVersion(id: version.reference.id, name: name, lane: version.lane, isDeletion: false, replaced: []))
        }
        former.remove(shared)
        try ledger.set(.former, to: former.encoded)
        engine.memory.former = former.origins
        merge.former = former.origins
    }

    /// Deletes the former versions of items on this device.
    private mutating func discard(_ names: [ItemName]) throws(KeychainFailure) {
        for name in names {
            if let version = try unsharedVersion(named: name) { try merge.remove(version) }
        }
    }

    /// The former version of an item; nil if the circle has another one, which may have arrived since the person decided.
    private func unsharedVersion(named name: ItemName) throws(KeychainFailure) -> LiveVersion? {
        let live = try ledger.liveVersions(named: name)
        guard let version = live.first, live.count == 1, merge.isFormer(version) else { return nil }
        return version
    }

    /// Writes a version that replaces all versions of an item and has the content of one of them.
    private mutating func keep(_ name: ItemName, _ reference: VersionReference) throws(KeychainFailure) {
        let live = try ledger.liveVersions(named: name)
        guard merge.sharesWrites, live.count > 1, let kept = live.first(where: { $0.reference == reference }),
            let content = try items.content(of: kept),
            let summary = try items.summary(of: content)
        else { return }
        var replaced: Set<VersionReference> = []
        for version in live {
            if version.reference.origin == nil {
                if let pending = try ledger.pendingVersion(version.reference.id), !isPlanted(.keepDropsList) {
                    replaced.formUnion(pending.replaced)
                }
                try ledger.removePending(version.reference.id)
            } else {
                replaced.insert(version.reference)
                try merge.remember(version.reference)
            }
            try merge.remove(version)
        }
        let id = SyncVersionID(Identifier128(high: randomWord(), low: randomWord()))
        try merge.addUnlessReplaced(VersionReference(id: id, origin: nil), content, summary)
        try ledger.insert(
            PendingVersion(id: id, name: name, lane: summary.lane, isDeletion: false, replaced: replaced.sorted()))
    }
}
