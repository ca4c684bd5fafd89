// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
package import KeychainIPC
internal import KeychainStore
internal import KeychainSystem

/// A point of a handover, for tests that interrupt it.
package enum HandoverPoint: String, CaseIterable, Sendable {
    case rowsCopied, prepared, placed, finished
}

/// What a handover has moved.
package struct HandoverReport: Sendable {
    package var storeID: StoreID
    /// The number of rows, with those of deleted items that synchronize and those of the quarantine.
    package var rowCount = 0
    /// Where keychaind keeps its copy of a keychain that was released, because it differs from the file in its place; nil if it keeps none.
    package var keptCopyPath: String?
}

extension LocalKeychain {
    /// Hands the keychain over to keychaind, and puts a signpost in the place of its file; creates the keychain first if there is none.
    ///
    /// Other processes can read meanwhile and cannot write. At any interruption either the file or keychaind has the keychain, with every
    /// acknowledged change:
    ///
    /// 1. keychaind makes a copy, which no program can use. Each row of it is compared.
    /// 2. keychaind makes the copy durable.
    /// 3. The signpost takes the place of the file.
    /// 4. The first program whose signpost names the copy makes keychaind use it. Here this process does.
    /// 5. A mark in the directory of key files takes the place of the key file and the anchors.
    ///
    /// Until step 3 the file is the keychain, and another attempt makes another copy.
    ///
    /// - Parameters:
    ///   - connector: Connects to keychaind.
    ///   - reach: Called at each point. For tests.
    /// - Returns: What was moved.
    /// - Throws: `.duplicateItem` if keychaind keeps another keychain of the user, `.unimplemented` if the keychain cannot be handed over,
    ///   `.notAvailable` if it is damaged, and the errors of the store and of keychaind. Nothing was changed, unless the cause is
    ///   `.outcomeUnknown`.
    package func handOver(
        to connector: @escaping DaemonClient.Connector, reach: (HandoverPoint) -> Void = { _ in }
    ) throws(KeychainFailure) -> HandoverReport {
        // Without keychaind nothing is created.
        let handover = try DaemonHandover(DaemonClient(entitlements: Self.noEntitlements, connector: connector))
        try perform(creating: true) { _ in }
        try requireSound()
        var report: HandoverReport?
        var isPlaced = false
        do throws(KeychainFailure) {
            try performOnCurrentKeybag { opened throws(KeychainFailure) in
                let keys = try opened.keysForHandover()
                // The transaction writes nothing. It keeps other processes from writing, and ends with an error, because the file is replaced.
                _ = try opened.store.write(ifKeybagGeneration: keys.keybagGeneration) { writing throws(KeychainFailure) in
                    // Another process may have begun to synchronize before.
                    _ = try opened.keysForHandover()
                    let copied = try Self.copy(writing, keys, to: handover)
                    reach(.rowsCopied)
                    try handover.prepareAdoption()
                    reach(.prepared)
                    report = copied
                    try Signpost(storeID: keys.storeID).replaceStore(at: try configuration().storePath)
                    isPlaced = true
                    reach(.placed)
                }
            }
        } catch {
            guard isPlaced else {
                // Otherwise a copy that nothing leads to would stay. If it is unknown what the place has, the copy may be the only one.
                if error.cause != .outcomeUnknown { try? handover.abandonAdoption() }
                throw error
            }
        }
        close()
        guard let report else { throw SealedKeychain.keybagChanged }
        // Otherwise the first program that uses the keychain does this.
        try? handover.finishAdoption()
        try removeFilesAfterHandover(of: report.storeID)
        reach(.finished)
        return report
    }

    /// Makes keychaind use the keychain to which the signpost points, and removes what is left of it here.
    ///
    /// Also completes a handover that was interrupted, and puts a lost signpost back.
    package func finishHandover(of storeID: StoreID, to connector: @escaping DaemonClient.Connector) throws(KeychainFailure) {
        let client = DaemonClient(entitlements: Self.noEntitlements, storeID: storeID, connector: connector)
        _ = try client.connect(until: .after(seconds: 30))
        try Signpost(storeID: storeID).restore(at: try configuration().storePath)
        try removeFilesAfterHandover(of: storeID)
    }

    /// Removes what is left of a keychain that keychaind keeps: keys in the kernel's keyring, the key file, and the anchors.
    private func removeFilesAfterHandover(of storeID: StoreID) throws(KeychainFailure) {
        backend.removeHeldKeys(.everything)
        let configuration = try configuration()
        let mark = KeptMark(configuration)
        try mark.write(storeID)
        let directory = configuration.keyDirectory
        let names = configuration.anchorPaths(for: storeID) + [".key", ".key.new"].map { "\(directory)/\(storeID.hexadecimal)\($0)" }
        do throws(Errno) {
            for name in names { try FileSystem.unlink(name) }
            try FileSystem.flush(directory)
        } catch {
            throw KeychainFailure(
                .notAvailable, "keychaind keeps the keychain, but its key file in \(directory) could not be removed: \(error)",
                path: directory, subject: .keyFile)
        }
    }

    static var noEntitlements: Entitlements { Entitlements(applicationIdentifier: "") }

    private func requireSound() throws(KeychainFailure) {
        let report = try verify(purgingQuarantine: false)
        let count = report.findings.count + report.damagedPageRowCount
        guard count == 0, report.structuralProblems.allSatisfy(\.isOfAnchor) else {
            throw KeychainFailure(
                .notAvailable, "the keychain is damaged, and only a sound one can be handed over", subject: .store, isDamage: true,
                remedy: .saveReadable)
        }
    }

    /// Copies all rows to keychaind, and compares what it has then, row by row.
    private static func copy(
        _ reading: any ItemReading, _ keys: KeychainKeys, to handover: DaemonHandover
    ) throws(KeychainFailure) -> HandoverReport {
        var report = HandoverReport(storeID: keys.storeID)
        try handover.beginAdoption(of: keys)
        var batch = RowBatch()
        try HandedOverRow.forEach(in: reading) { row throws(KeychainFailure) in
            report.rowCount += 1
            if let rows = batch.add(row) { try handover.insert(rows) }
        }
        try handover.insert(batch.rows)
        let copies = try handover.rows()
        try HandedOverRow.forEach(in: reading) { row throws(KeychainFailure) in
            guard try copies.next() == row else { throw Self.isDifferent }
        }
        guard try copies.next() == nil else { throw Self.isDifferent }
        return report
    }

    static var isDifferent: KeychainFailure {
        KeychainFailure(.internal, "the copy of the keychain differs from the original, so it is not used", subject: .store)
    }
}

extension LocalKeychain {
    /// Returns what opens the keychain, without its rows.
    ///
    /// Throws `.unimplemented` if it cannot be handed over: while synchronization is on, and with another protector than a key file.
    package func keysForHandover() throws(KeychainFailure) -> KeychainKeys {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in try opened.keysForHandover() }
    }

    /// Calls `body` with each row, in the order in which another store inserts them.
    package func forEachHandedOverRow(_ body: (HandedOverRow) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        try perform(creating: false) { opened throws(KeychainFailure) in
            try opened.store.read { reading throws(KeychainFailure) in try HandedOverRow.forEach(in: reading, body) }
        }
    }
}

extension OpenKeychain {
    fileprivate func keysForHandover() throws(KeychainFailure) -> KeychainKeys {
        guard try !fileStore().isSynchronizing() else {
            throw KeychainFailure(
                .unimplemented,
                "this keychain is synchronized, which keychaind does not do: leave the circle with `valet sync leave` first, and nothing is lost"
            )
        }
        guard protector.kind == .keyFile, let keybagCopy = keybag.usedCopy.copies.first else {
            throw KeychainFailure(
                .unimplemented,
                "the protector of this keychain is \(protector.kind.name), which keychaind cannot use: run `valet protector set keyFile` first"
            )
        }
        return KeychainKeys(
            storeID: keybag.storeID, keybag: keybagCopy, keybagGeneration: keybag.keybagGeneration,
            deviceSecret: SharedSecretBytes(try deviceSecret()))
    }
}
