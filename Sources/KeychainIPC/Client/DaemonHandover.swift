// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// A connection on which a keychain is handed over to keychaind, or back.
///
/// keychaind gives up what it began if the connection ends.
package final class DaemonHandover {
    private let connection: DaemonConnection

    /// Makes a connection.
    ///
    /// `client` names no store.
    package init(_ client: DaemonClient) throws(KeychainFailure) {
        connection = try client.connect(until: .after(seconds: 5))
    }

    /// Returns what keychaind has of the keychain of this process's user, and its identifier if it is complete.
    package func keptKeychain() throws(KeychainFailure) -> (KeptKeychain, storeID: StoreID?) {
        guard case .keptKeychain(let kept, let storeID) = try reply(to: .keptKeychain) else { throw Self.unexpectedReply }
        return (kept, storeID)
    }

    // MARK: Adoption

    /// Begins to copy the keychain of this process's user.
    ///
    /// Throws `.duplicateItem` if keychaind keeps one of the user.
    package func beginAdoption(of keys: KeychainKeys) throws(KeychainFailure) { try perform(.beginAdoption(keys)) }

    package func insert(_ rows: [HandedOverRow]) throws(KeychainFailure) { try perform(.insertRows(rows)) }

    /// Makes the copy durable, and ready for the first program whose signpost names it.
    package func prepareAdoption() throws(KeychainFailure) { try perform(.prepareAdoption) }

    /// Makes keychaind use the copy, because the signpost is in place.
    package func finishAdoption() throws(KeychainFailure) { try perform(.finishAdoption) }

    /// Makes keychaind remove the copy, because the file is still in its place.
    package func abandonAdoption() throws(KeychainFailure) { try perform(.abandonAdoption) }

    // MARK: Release

    /// Ends the connections of the programs of a user, and returns what opens their keychain; for root only.
    package func beginRelease(ofUser user: UInt32) throws(KeychainFailure) -> KeychainKeys {
        guard case .keychainKeys(let keys) = try reply(to: .beginRelease(user: user)) else { throw Self.unexpectedReply }
        return keys
    }

    /// Makes keychaind serve the keychain no more, also after a restart.
    package func prepareRelease() throws(KeychainFailure) { try perform(.prepareRelease, isOutcomeUnknown: true) }

    /// Makes keychaind delete the keychain.
    ///
    /// Throws `.parameter`, as `setReleasedAside` does, if keychaind is in charge of it.
    package func finishRelease() throws(KeychainFailure) { try perform(.finishRelease, isOutcomeUnknown: true) }

    /// Makes keychaind keep the keychain apart from those that are used; returns the directory.
    package func setReleasedAside() throws(KeychainFailure) -> String {
        guard case .path(let path) = try reply(to: .setReleasedAside, isOutcomeUnknown: true) else { throw Self.unexpectedReply }
        return path
    }

    // MARK: Rows

    /// Returns the rows that keychaind has, which are received as they are read.
    ///
    /// No other call is possible before the last one.
    package func rows() throws(KeychainFailure) -> Rows {
        Rows(connection, first: try reply(to: .readRows))
    }

    package final class Rows {
        private let connection: DaemonConnection
        private var rows: ArraySlice<HandedOverRow> = []
        private var reply: Reply?

        fileprivate init(_ connection: DaemonConnection, first: Reply) {
            self.connection = connection
            reply = first
        }

        /// Returns the next row; nil after the last one.
        package func next() throws(KeychainFailure) -> HandedOverRow? {
            while rows.isEmpty {
                switch reply {
                case .rows(let batch, let isLast):
                    rows = batch[...]
                    if isLast { reply = nil } else { reply = try connection.nextReply(until: .after(seconds: timeoutSeconds)) }
                case .failure(let failure): throw failure
                case nil: return nil
                default: throw DaemonHandover.unexpectedReply
                }
            }
            return rows.removeFirst()
        }
    }

    // MARK: Calls

    private func perform(_ call: Call, isOutcomeUnknown: Bool = false) throws(KeychainFailure) {
        guard case .done = try reply(to: call, isOutcomeUnknown: isOutcomeUnknown) else { throw Self.unexpectedReply }
    }

    /// `isOutcomeUnknown` says whether a lost reply means that keychaind may be in charge, or not.
    private func reply(to call: Call, isOutcomeUnknown: Bool = false) throws(KeychainFailure) -> Reply {
        switch connection.exchange(Request(call), until: .after(seconds: timeoutSeconds)) {
        case .response(let response):
            if case .failure(let failure) = response.reply { throw failure }
            return response.reply
        case .notSent(let failure): throw KeychainFailure(failure, isOutcomeUnknown: false)
        case .noReply(let failure): throw KeychainFailure(failure, isOutcomeUnknown: isOutcomeUnknown)
        }
    }

    fileprivate static var unexpectedReply: KeychainFailure { KeychainFailure(.malformed, isOutcomeUnknown: false) }
}

/// How long keychaind may take for a step, in seconds.
private let timeoutSeconds: UInt32 = 60
