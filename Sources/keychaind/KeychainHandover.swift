// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine

/// The handover of a user's keychain on one connection: its adoption, or its release.
///
/// Programs cannot use the keychain meanwhile. If the connection ends before the last step, an adoption has changed nothing, and a release leaves
/// the keychain in use, or, after `prepareRelease`, to be released again.
final class KeychainHandover {
    private enum Work {
        case adoption(KeychainImport)
        case release(LocalKeychain)
    }

    private let keychains: UserKeychains
    private let user: UInt32
    /// Nil at the end.
    private var work: Work?
    private var stage: HandoverStage { keychains.stage(ofUser: user) }

    /// Begins an adoption.
    ///
    /// Throws `.duplicateItem` if there is a keychain of the user, and the errors of `KeychainImport.requireAcceptable`: the passwords of one user
    /// must not take the memory that those of others need.
    init(adopting keys: KeychainKeys, ofUser user: UInt32, _ keychains: UserKeychains) throws(KeychainFailure) {
        // Before programs are kept from the keychain, because any program can ask for this.
        try keychains.stage(ofUser: user).requireFree(for: keys.storeID)
        let configuration = keychains.configuration(ofUser: user)
        let largestCost = try configuration.passcodePolicy().usualCost
        try KeychainImport.requireAcceptable(keys, largestCost: largestCost)
        try keychains.beginHandover(ofUser: user)
        do throws(KeychainFailure) {
            try keychains.stage(ofUser: user).begin(keys.storeID)
            work = .adoption(try KeychainImport(keys, configuration: configuration, largestCost: largestCost))
        } catch {
            keychains.stage(ofUser: user).removeIncomplete()
            keychains.endHandover(ofUser: user)
            throw error
        }
        self.keychains = keychains
        self.user = user
    }

    /// Begins a release.
    ///
    /// Throws `.itemNotFound` if there is no keychain of the user.
    init(releasingKeychainOfUser user: UInt32, _ keychains: UserKeychains, endConnections: () -> Void) throws(KeychainFailure) {
        try keychains.beginHandover(ofUser: user, endConnections: endConnections)
        do throws(KeychainFailure) {
            switch try keychains.stage(ofUser: user).read() {
            case .inUse, .prepared, .releasing: break
            case .nothing, .incomplete: throw KeychainFailure(.itemNotFound, "keychaind keeps no keychain of this user")
            }
        } catch {
            keychains.endHandover(ofUser: user)
            throw error
        }
        work = .release(
            LocalKeychain(configuration: keychains.configuration(ofUser: user), entitlements: Entitlements(applicationIdentifier: "")))
        self.keychains = keychains
        self.user = user
    }

    deinit {
        // Closes the store before programs can open it.
        work = nil
        stage.removeIncomplete()
        keychains.endHandover(ofUser: user)
    }

    func insert(_ rows: [HandedOverRow]) throws(KeychainFailure) { try adoption().insert(rows) }

    /// Calls `body` with each row that the keychain has, in batches of a bounded size; the last one may be empty.
    func forEachBatch(_ body: (_ rows: [HandedOverRow], _ isLast: Bool) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        var batch = RowBatch()
        let add = { (row: HandedOverRow) throws(KeychainFailure) in
            if let rows = batch.add(row) { try body(rows, false) }
        }
        switch work {
        case .adoption(let copy): try copy.forEachRow(add)
        case .release(let keychain): try keychain.forEachHandedOverRow(add)
        case nil: throw Self.outOfOrder
        }
        try body(batch.rows, true)
    }

    /// Closes the copy, which is used from the first program on whose signpost names it.
    func prepareAdoption() throws(KeychainFailure) {
        let copy = try adoption()
        guard try stage.read() == .incomplete else { throw Self.outOfOrder }
        try copy.close()
        try copy.storeKeyFile()
        try stage.change(from: .incomplete, to: .prepared)
    }

    func finishAdoption() throws(KeychainFailure) {
        _ = try adoption()
        guard try stage.read() == .prepared else { throw Self.outOfOrder }
        try stage.change(from: .prepared, to: .inUse)
    }

    /// Removes the copy that was made on this connection.
    func abandonAdoption() throws(KeychainFailure) {
        _ = try adoption()
        guard try stage.read() == .prepared else { throw Self.outOfOrder }
        try stage.change(from: .prepared, to: .incomplete)
    }

    func keys() throws(KeychainFailure) -> KeychainKeys { try release().keysForHandover() }

    func prepareRelease() throws(KeychainFailure) {
        _ = try release()
        try stage.change(from: try stage.read(), to: .releasing)
    }

    /// Deletes the keychain, and its keys in the memory of this process.
    func finishRelease() throws(KeychainFailure) {
        try closeReleased()
        try stage.removeReleased()
    }

    /// Keeps the keychain under another name, because the file of the user differs from it; returns the path.
    func setReleasedAside() throws(KeychainFailure) -> String {
        try closeReleased()
        return try stage.setAside()
    }

    private func closeReleased() throws(KeychainFailure) {
        // A prepared copy may be the newer one, but the file is in charge again, or still.
        guard try [.releasing, .prepared].contains(stage.read()) else { throw Self.outOfOrder }
        let keychain = try release()
        do throws(KeychainFailure) {
            try keychain.lock(.everything)
        } catch {
            // Without a passcode nothing is held.
            guard error.refusal == .passcodeNotSet else { throw error }
        }
        keychain.close()
    }

    private func adoption() throws(KeychainFailure) -> KeychainImport {
        guard case .adoption(let copy) = work else { throw Self.outOfOrder }
        return copy
    }

    private func release() throws(KeychainFailure) -> LocalKeychain {
        guard case .release(let keychain) = work else { throw Self.outOfOrder }
        return keychain
    }

    static var outOfOrder: KeychainFailure { KeychainFailure(.parameter, "this step of a handover is not possible now") }
}
