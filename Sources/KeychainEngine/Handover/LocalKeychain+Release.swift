// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainIPC
internal import KeychainStore
internal import KeychainSystem

extension LocalKeychain {
    /// Takes the keychain back from keychaind, in the place of its signpost; for root, or a process that was root when it connected.
    ///
    /// Programs of the user are refused from the first step to the third one, and after an interruption until the release is repeated:
    ///
    /// 1. keychaind serves the keychain no more. So no program relies on keychaind for what another one can read in the copy.
    /// 2. The rows are copied beside the signpost, and compared.
    /// 3. The copy takes the place of the signpost, with a key file.
    /// 4. keychaind deletes the keychain. If step 3 was made by an attempt that was interrupted, and the file differs by now, keychaind sets its
    ///    keychain aside instead: it cannot know whether the file has newer changes, or is an old copy that was put back.
    ///
    /// - Parameters:
    ///   - user: The user of the keychain, as whom this process runs.
    ///   - handover: A connection to keychaind.
    ///   - requiresSignpost: Whether there must be a signpost, or a mark of one that was lost.
    ///   - reach: Called at each point. For tests.
    /// - Returns: What was moved.
    /// - Throws: `.itemNotFound` if keychaind keeps no keychain of the user, `.missingEntitlement` for a process that was not root,
    ///   `.duplicateItem` if there is a keychain in the place that keychaind has not given back, `.notAvailable` if there is no signpost, with the cause
    ///   `.missing`, or if it is that of another keychain, and the errors of the store and of keychaind.
    package func takeBack(
        ofUser user: UInt32, from handover: DaemonHandover, requiresSignpost: Bool = true, reach: (HandoverPoint) -> Void = { _ in }
    ) throws(KeychainFailure) -> HandoverReport {
        let configuration = try configuration()
        let place = try place()
        guard place != .free || !requiresSignpost else {
            throw KeychainFailure(
                .notAvailable, "there is neither a signpost nor a keychain at \(configuration.storePath)", path: configuration.storePath,
                subject: .store, cause: .missing)
        }
        let keys = try handover.beginRelease(ofUser: user)
        let path = configuration.storePath
        switch place {
        case .free, .signpost(nil), .signpost(keys.storeID): break
        case .signpost(let other?):
            throw KeychainFailure(
                .notAvailable,
                "the signpost at \(path) is that of the keychain \(other.hexadecimal), and keychaind keeps \(keys.storeID.hexadecimal) for this user",
                path: path, subject: .store, cause: .otherStore)
        case .keychain(keys.storeID):
            return try completeRelease(of: keys, from: handover, reach)
        case .keychain: throw Self.isOccupied(path, keys.storeID)
        }
        var report = HandoverReport(storeID: keys.storeID)
        let directory = try ReleaseDirectory(for: path)
        defer { directory.remove() }
        let keyFile = KeyFile(directory: configuration.keyDirectory, storePath: path)
        try keyFile.createDirectory()
        try handover.prepareRelease()
        reach(.prepared)
        let copyPath = directory.path + "/keychain.db"
        report.rowCount = try Self.copy(keys, from: handover, to: copyPath, configuration)
        reach(.rowsCopied)
        for anchor in configuration.anchorPaths(for: keys.storeID) { FileSystem.tryUnlink(anchor) }
        // That of an attempt that was interrupted, with the same secret.
        keyFile.discard(for: keys.storeID)
        try keyFile.prepareMove(keys.deviceSecret.secret, for: keys.storeID)
        // With it, the file would count as an older copy.
        KeptMark(configuration).remove(keys.storeID)
        do throws(KeychainFailure) {
            try Signpost.replace(at: path, with: copyPath, using: directory.path)
        } catch {
            if FileSystem.exists(copyPath) {
                keyFile.discard(for: keys.storeID)
                try? KeptMark(configuration).write(keys.storeID)
            }
            throw error
        }
        reach(.placed)
        try keyFile.confirm(for: keys.storeID)
        directory.remove()
        try handover.finishRelease()
        reach(.finished)
        return report
    }

    /// What is at the path of the keychain.
    private enum Place: Equatable {
        case free
        /// nil for a damaged one.
        case signpost(StoreID?)
        case keychain(StoreID)
    }

    private func place() throws(KeychainFailure) -> Place {
        do throws(KeychainFailure) {
            return .keychain(try storeID())
        } catch {
            if case .keptByDaemon(let storeID) = error.cause { return .signpost(storeID) }
            if error.status == .itemNotFound { return .free }
            if error.cause == .malformed, Signpost.isPresent(at: try configuration().storePath) { return .signpost(nil) }
            throw error
        }
    }

    private static func copy(
        _ keys: KeychainKeys, from handover: DaemonHandover, to path: String, _ configuration: KeychainConfiguration
    ) throws(KeychainFailure) -> Int {
        var configuration = configuration
        configuration.storePath = path
        let copy = try KeychainImport(keys, configuration: configuration)
        var batch = RowBatch()
        var count = 0
        let rows = try handover.rows()
        while let row = try rows.next() {
            count += 1
            if let rows = batch.add(row) { try copy.insert(rows) }
        }
        try copy.insert(batch.rows)
        let originals = try handover.rows()
        try copy.forEachRow { row throws(KeychainFailure) in
            guard try originals.next() == row else { throw Self.isDifferent }
        }
        guard try originals.next() == nil else { throw Self.isDifferent }
        try copy.close()
        return count
    }

    /// Completes a release that was interrupted after it put the file in place, or undoes an adoption that was interrupted while the file was there.
    private func completeRelease(
        of keys: KeychainKeys, from handover: DaemonHandover, _ reach: (HandoverPoint) -> Void
    ) throws(KeychainFailure) -> HandoverReport {
        let configuration = try configuration()
        var report = HandoverReport(storeID: keys.storeID)
        // With another keybag, the passcode or the keys were changed.
        var isDifferent = try keysForHandover().keybag != keys.keybag
        let originals = try handover.rows()
        try forEachHandedOverRow { row throws(KeychainFailure) in
            report.rowCount += 1
            if try originals.next() != row { isDifferent = true }
        }
        while try originals.next() != nil { isDifferent = true }
        do throws(KeychainFailure) {
            if isDifferent { report.keptCopyPath = try handover.setReleasedAside() } else { try handover.finishRelease() }
        } catch {
            throw error.status == .parameter ? Self.isOccupied(configuration.storePath, keys.storeID) : error
        }
        KeptMark(configuration).remove(keys.storeID)
        ReleaseDirectory.removeLeftovers(for: configuration.storePath)
        reach(.finished)
        return report
    }

    private static func isOccupied(_ path: String, _ storeID: StoreID) -> KeychainFailure {
        KeychainFailure(
            .duplicateItem,
            "there is another keychain at \(path), so keychaind keeps the keychain \(storeID.hexadecimal): move the file away with its key file",
            path: path, subject: .store)
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
        for name in (try? FileSystem.names(in: parent)) ?? [] where isName(name) {
            ReleaseDirectory(path: "\(parent)/\(name)").remove()
        }
    }

    private static func isName(_ name: String) -> Bool {
        name.hasPrefix(prefix) && Identifier128(hexadecimal: name.dropFirst(prefix.count)) != nil
    }

    /// Best effort; a keychain that could not be put back in its place stays.
    func remove() {
        let former = path + "/signpost"
        guard (try? FileStatus(of: path))?.kind == .directory, !FileSystem.exists(former) || Signpost.isPresent(at: former) else { return }
        for name in ["keychain.db", "keychain.db-wal", "keychain.db-shm", "signpost"] { FileSystem.tryUnlink("\(path)/\(name)") }
        try? FileSystem.removeDirectory(path)
    }
}
