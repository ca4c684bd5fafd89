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
    /// How many of them need a person for each use, whom keychaind cannot ask.
    package var constrainedCount = 0
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
    /// 5. The key file and the anchors are removed.
    ///
    /// Until step 3 the file is the keychain, and another attempt replaces the copy.
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
        try perform(creating: true) { _ in }
        try requireSound()
        let handover = try DaemonHandover(DaemonClient(entitlements: Self.noEntitlements, connector: connector))
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
            guard isPlaced else { throw error }
        }
        closeCurrent()
        guard let report else { throw SealedKeychain.keybagChanged }
        // Otherwise the first program that uses the keychain does this.
        try? handover.finishAdoption()
        try removeFilesAfterHandover(of: report.storeID)
        reach(.finished)
        return report
    }

    /// Makes keychaind use the keychain to which the signpost points, and removes what is left of it here.
    ///
    /// Also completes a handover that was interrupted.
    package func finishHandover(of storeID: StoreID, to connector: @escaping DaemonClient.Connector) throws(KeychainFailure) {
        let client = DaemonClient(entitlements: Self.noEntitlements, storeID: storeID, connector: connector)
        _ = try client.connect(until: .after(seconds: 30))
        try removeFilesAfterHandover(of: storeID)
    }

    /// Removes what is left of a keychain that keychaind keeps: keys in the kernel's keyring, the key file, and the anchors.
    private func removeFilesAfterHandover(of storeID: StoreID) throws(KeychainFailure) {
        backend.removeHeldKeys(.everything)
        let directory = try configuration().keyDirectory
        do throws(Errno) {
            // The key file, under each of its names, and the anchors.
            for name in try FileSystem.names(in: directory) where name.hasPrefix(storeID.hexadecimal + ".") {
                try FileSystem.unlink("\(directory)/\(name)")
            }
            try FileSystem.flush(directory)
        } catch .notFound {
        } catch {
            throw KeychainFailure(
                .notAvailable, "keychaind keeps the keychain, but its key file in \(directory) could not be removed: \(error)",
                path: directory, subject: .keyFile)
        }
    }

    private static var noEntitlements: Entitlements { Entitlements(applicationIdentifier: "") }

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
            if row.row.header.constraints != nil { report.constrainedCount += 1 }
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

    fileprivate static var isDifferent: KeychainFailure {
        KeychainFailure(.internal, "the copy of the keychain differs from the original, so it is not used", subject: .store)
    }
}

/// Rows that are sent together.
private struct RowBatch {
    private(set) var rows: [HandedOverRow] = []
    private var byteCount = 0

    /// Adds a row; returns the rows of the batch, which is empty then, if it is large enough.
    mutating func add(_ row: HandedOverRow) -> [HandedOverRow]? {
        rows.append(row)
        byteCount += row.byteCount
        guard byteCount >= HandedOverRow.batchByteCount else { return nil }
        defer { (rows, byteCount) = ([], 0) }
        return rows
    }
}

extension LocalKeychain {
    /// Takes the keychain back from keychaind, in the place of its signpost; for root, or a process that was root when it connected.
    ///
    /// No program can use the keychain meanwhile. At any interruption either keychaind or the file has it. Between the last two steps of
    /// keychaind, programs of the user are refused until the release is repeated.
    ///
    /// - Parameters:
    ///   - user: The user of the keychain, as whom this process runs.
    ///   - handover: A connection to keychaind.
    ///   - reach: Called at each point. For tests.
    /// - Returns: What was moved.
    /// - Throws: `.itemNotFound` if keychaind keeps no keychain of the user, `.missingEntitlement` for a process that was not root,
    ///   `.notAvailable` if there is no signpost to the keychain, and the errors of the store and of keychaind.
    package func takeBack(
        ofUser user: UInt32, from handover: DaemonHandover, reach: (HandoverPoint) -> Void = { _ in }
    ) throws(KeychainFailure) -> HandoverReport {
        let configuration = try configuration()
        let path = configuration.storePath
        var signpost: StoreID?
        do throws(KeychainFailure) {
            try perform(creating: false) { _ in }
        } catch {
            guard case .keptByDaemon(let storeID) = error.cause else { throw error.status == .itemNotFound ? Self.noSignpost(path) : error }
            signpost = storeID
        }
        let keys = try handover.beginRelease(ofUser: user)
        var report = HandoverReport(storeID: keys.storeID)
        guard let signpost else {
            // The file is in place already if only the last step was interrupted, which keychaind knows.
            guard try storeID() == keys.storeID else { throw Self.noSignpost(path) }
            do throws(KeychainFailure) { try handover.finishRelease() } catch {
                throw error.status == .parameter ? Self.noSignpost(path) : error
            }
            ReleaseDirectory.removeLeftovers(for: path)
            return report
        }
        guard signpost == keys.storeID else { throw Self.noSignpost(path) }
        let directory = try ReleaseDirectory(for: path)
        var copyConfiguration = configuration
        copyConfiguration.storePath = directory.path + "/keychain.db"
        copyConfiguration.keyDirectory = directory.path + "/keys"
        let copy = try KeychainImport(keys, configuration: copyConfiguration)
        var batch = RowBatch()
        let rows = try handover.rows()
        while let row = try rows.next() {
            report.rowCount += 1
            if let rows = batch.add(row) { try copy.insert(rows) }
        }
        try copy.insert(batch.rows)
        let originals = try handover.rows()
        try copy.forEachRow { row throws(KeychainFailure) in
            guard try originals.next() == row else { throw Self.isDifferent }
        }
        guard try originals.next() == nil else { throw Self.isDifferent }
        try copy.close()
        reach(.rowsCopied)
        let keyFile = KeyFile(directory: configuration.keyDirectory, storePath: path)
        try keyFile.createDirectory()
        for anchor in configuration.anchorPaths(for: keys.storeID) { FileSystem.tryUnlink(anchor) }
        try keyFile.prepareMove(keys.deviceSecret.secret, for: keys.storeID)
        try handover.prepareRelease()
        reach(.prepared)
        do throws(Errno) {
            try FileSystem.rename(copyConfiguration.storePath, to: path)
            try FileSystem.flush(FileSystem.parent(of: path))
        } catch {
            throw FileSystem.creationFailure(error, in: FileSystem.parent(of: path))
        }
        reach(.placed)
        try keyFile.confirm(for: keys.storeID)
        try handover.finishRelease()
        directory.remove()
        reach(.finished)
        return report
    }

    private static func noSignpost(_ path: String) -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "there is no signpost at \(path) to the keychain that keychaind keeps for this user",
            path: path,
            subject: .store)
    }
}

/// A directory beside a keychain in which its copy is made.
private struct ReleaseDirectory {
    let path: String

    private static let prefix = ".release-"

    /// Removes the directories that interrupted releases have left, of which keychaind begins one at a time.
    init(for storePath: String) throws(KeychainFailure) {
        Self.removeLeftovers(for: storePath)
        path = "\(FileSystem.parent(of: storePath))/\(Self.prefix)\(Identifier128.random().hexadecimal)"
        try PrivateDirectory.make(path)
    }

    private init(path: String) {
        self.path = path
    }

    static func removeLeftovers(for storePath: String) {
        let parent = FileSystem.parent(of: storePath)
        for name in (try? FileSystem.names(in: parent)) ?? [] where name.hasPrefix(prefix) {
            ReleaseDirectory(path: "\(parent)/\(name)").remove()
        }
    }

    /// Best effort.
    func remove() {
        for directory in [path + "/keys", path] {
            for name in (try? FileSystem.names(in: directory)) ?? [] { FileSystem.tryUnlink("\(directory)/\(name)") }
            try? FileSystem.removeDirectory(directory)
        }
    }
}
