// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
public import FoundationEssentials
package import KeychainCore
internal import KeychainEngine
internal import KeychainSystem
internal import SyncCore

/// The credential of a reader that any number of machines can be, such as the servers of a fleet.
///
/// A machine with the credential reads everything that the circle shares, until an owner removes the reader. Store it as you store a private key.
/// Descriptions and dumps do not show it, and its secret is wiped with the last copy of this value.
///
/// ```swift
/// let credential = try SyncCredential(path: "/run/credentials/web.service/web")
/// try await KeychainSync.join(on: storage, credential: credential)
/// try await SyncAgent(on: storage).run()
/// ```
public struct SyncCredential: Sendable, CustomStringConvertible, CustomReflectable {
    let reader: ReaderCredential

    init(_ reader: ReaderCredential) { self.reader = reader }

    /// The name that its owner has given it.
    public var name: String { reader.note.name.text }
    /// From when on machines refuse it.
    public var expires: Date { Date(timeIntervalSinceReferenceDate: reader.note.expiration) }
    /// ``SyncStorage/location`` of the storage in which the owner's device has made it, without the options of a URL.
    public var location: String { reader.location }

    /// Reads a credential from a file, such as a credential of a systemd service.
    ///
    /// - Parameter path: The path of the file. Links are followed.
    /// - Throws: `.invalidCredential` if it cannot be read, is damaged, or is none.
    public init(path: String) throws(SyncFailure) {
        do throws(KeychainFailure) {
            guard FileSystem.exists(path) else { throw KeychainFailure(.notAvailable, "there is no credential at \(path)") }
            let bytes = try PrivateFile.read(
                path, byteLimit: ReaderCredential.largestByteCount, subject: "the credential", requiresPrivateMode: false)
            reader = try ReaderCredential(bytes, cipher: LocalCircle.cipher)
        } catch {
            throw SyncFailure(.invalidCredential, error.reason)
        }
    }

    /// Parses a credential, for example of a secret manager.
    ///
    /// - Parameter data: The bytes of the credential, which the caller wipes.
    /// - Throws: `.invalidCredential` if it is damaged, or is none.
    public init(_ data: Data) throws(SyncFailure) {
        var bytes = Array(data)
        defer { bytes.wipe() }
        do throws(KeychainFailure) {
            // The region has as many bytes, or one that stays zero.
            let secret = try unsafe SecretBytes(byteCount: max(bytes.count, 1)) { unsafe $0.copyBytes(from: bytes) }
            reader = try ReaderCredential(secret, cipher: LocalCircle.cipher)
        } catch {
            throw SyncFailure(.invalidCredential, error.reason)
        }
    }

    /// Writes the credential to a new file that only this user can read.
    ///
    /// - Parameter path: The path of the file, which must not exist.
    /// - Throws: `.invalidCredential` if the file exists or cannot be written.
    public func write(toPath path: String) throws(SyncFailure) {
        do throws(KeychainFailure) {
            try PrivateFile.create(path, contents: try reader.encoded(), subject: "the credential")
            try PrivateFile.flushDirectory(of: path, subject: "the credential")
        } catch {
            throw SyncFailure(.invalidCredential, error.reason)
        }
    }

    /// Returns the bytes of the credential.
    package func encoded() throws(SyncFailure) -> SecretBytes {
        do throws(KeychainFailure) { return try reader.encoded() } catch { throw SyncFailure(error) }
    }

    /// Says that there is a credential, and of which name.
    public var description: String { "(credential \(name))" }
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension KeychainSync {
    /// Admits a reader that any number of machines can be, and returns its credential.
    ///
    /// Returns once the storage has everything that a machine needs to join. To replace a credential, make another one, give it to the machines, and
    /// remove the reader of the first one with ``remove(_:on:)``.
    ///
    /// - Parameters:
    ///   - name: The name for people: 1 to 64 bytes of UTF-8, visible characters with single spaces between them.
    ///   - duration: How long machines accept it. The end of this time does not end the access of a thief: only a removal does.
    ///   - storage: The storage of the circle.
    /// - Returns: The credential, which is stored nowhere.
    /// - Throws: `.notStarted`, `.notOwner`, `.invalidInput` for the name or the duration, `.locked` unless the keychain is unlocked, `.storage`, and
    ///   `.keychain`. After an error the circle has no such reader.
    public static func makeCredential(
        named name: String, validFor duration: Duration, on storage: any SyncStorage
    ) async throws(SyncFailure) -> SyncCredential {
        let local = try LocalCircle.current()
        let name = try LocalCircle.deviceName(name)
        guard duration > .zero else { throw SyncFailure(.invalidInput, "a credential has to be valid for some time") }
        let membership = try local.membership()
        guard try local.roster().members[membership.device]?.role.isOwner == true else {
            throw SyncFailure(.notOwner, "only an owner of the circle can make a credential")
        }
        // Otherwise the reader would not get the key of the items that can be read while unlocked.
        guard try local.attempt({ () throws(KeychainFailure) in try local.keychain.sessionStatus().state }) == .unlocked else {
            throw SyncFailure(.locked, "the keychain is locked")
        }
        // A storage that is gone is noticed before anything is changed.
        _ = try await circles(in: storage)
        let cipher = LocalCircle.cipher
        let secret = try local.attempt { () throws(KeychainFailure) in try cipher.makeCredentialSecret() }
        let keys = try local.attempt { () throws(KeychainFailure) in try cipher.deviceKeys(ofCredential: secret) }
        let (seconds, attoseconds) = duration.components
        let note = CredentialNote(name: name, expiration: local.clock.now() + Double(seconds) + Double(attoseconds) / 1e18)
        let host = EngineHost(local.keychain, clock: local.clock)
        try await host.perform(.admitCredential(keys.publicKeys, note))
        do throws(SyncFailure) {
            try await sendStatements(of: local, over: storage)
            return SyncCredential(
                try local.readLedger { ledger throws(KeychainFailure) in
                    try ReaderCredential(
                        secret: secret, note: note, location: withoutOptions(storage.location), admittedBy: membership, cipher: cipher,
                        in: ledger)
                })
        } catch {
            // A reader whose credential exists nowhere would stay for ever.
            try await host.perform(.remove(DeviceID(of: keys.publicKeys, role: .reader, cipher: cipher)))
            throw error
        }
    }

    /// Waits until the storage has all statements of this device.
    private static func sendStatements(of local: LocalCircle, over storage: any SyncStorage) async throws(SyncFailure) {
        if let failure = await local.exchange(over: storage) { throw failure }
        // An agent that runs sends them.
        let deadline = Deadline.after(seconds: 60)
        while try local.hasUnsentStatements() {
            guard !deadline.isOver, (try? await Task.sleep(for: .milliseconds(20))) != nil else {
                throw SyncFailure(.storage, "the agent of this keychain has not sent the admission within a minute")
            }
        }
    }

    /// The options of a URL name files of this machine.
    private static func withoutOptions(_ location: String) -> String {
        location.contains("://") ? String(location.prefix { $0 != "?" }) : location
    }

    /// Joins a circle with a credential, without a person, and reads what the circle has.
    ///
    /// Call it whenever the machine starts: with the credential that it has, it only reads what is new, and with another one of the circle the machine
    /// goes on with what it has. Nothing is written to the storage.
    ///
    /// - Parameters:
    ///   - storage: The storage of the circle.
    ///   - credential: The credential.
    /// - Returns: What this machine has received, and why not everything was read, if so.
    /// - Throws: `.expired`; `.removed` if an owner has removed the reader; `.unconfirmed`; `.noCircle` if the storage does not have the circle;
    ///   `.alreadyStarted` if this keychain is in a circle by other means; `.agentRunning` if an agent runs with another credential; `.storage`,
    ///   `.locked`, and `.keychain`.
    @discardableResult
    public static func join(on storage: any SyncStorage, credential: SyncCredential) async throws(SyncFailure) -> SyncJoined {
        let local = try LocalCircle.current()
        let reader = credential.reader
        if let failure = SyncFailure.expired(reader.note.expiration, named: credential.name, now: local.clock.now()) { throw failure }
        let membership = reader.circle.membership
        switch try local.membershipIfAny() {
        case membership: try local.noteLocation(of: storage)
        case let former?: try local.replace(former, by: reader, at: storage)
        case nil:
            guard try await circles(in: storage).contains(membership.circle) else {
                throw SyncFailure(
                    .noCircle, "\(storage.location) does not have the circle of the credential, which was made for \(credential.location)")
            }
            try local.enter(reader.keys, at: storage, again: membership.circle) { ledger throws(KeychainFailure) in
                try reader.store(now: local.clock.now(), in: ledger)
            }
        }
        var unread = await local.exchange(over: storage, reportsUnread: true)
        switch unread?.code {
        case .removed: throw SyncFailure(.removed, "the credential \(credential.name) was removed from the circle")
        case .unconfirmed:
            throw SyncFailure(
                .unconfirmed,
                "the owner that made the credential \(credential.name) was removed, and no other device has confirmed the credential")
        default: break
        }
        if unread == nil { unread = try missingChanges(in: local) }
        let counts = try local.counts()
        return SyncJoined(
            role: .reader, sharedItemCount: counts.shared, unsharedItemCount: counts.unshared, conflictCount: counts.conflicts,
            unread: unread)
    }

    /// The failure to read changes that other devices have read, or that were known when the credential was made; nil if there are none.
    ///
    /// What waits for an unlock, or for an agent that runs, is not missing.
    static func missingChanges(in local: LocalCircle) throws(SyncFailure) -> SyncFailure? {
        let status = try status()
        let isUnlocked = try local.attempt { () throws(KeychainFailure) in try local.keychain.sessionStatus().state } == .unlocked
        guard !status.unreadDevices.isEmpty, isUnlocked, !status.isAgentRunning else { return nil }
        let names = status.unreadDevices.map { $0 ?? "an unnamed device" }.joined(separator: ", ")
        return SyncFailure(.changesMissing, "\(status.location) lacks changes of \(names) that other devices have seen there")
    }
}

extension LocalCircle {
    fileprivate func hasUnsentStatements() throws(SyncFailure) -> Bool {
        try readLedger { ledger throws(KeychainFailure) in
            try ledger.outgoingNames().contains { ObjectName($0)?.folder == .statements }
        }
    }

    /// Remembers where the storage is now.
    func noteLocation(of storage: any SyncStorage) throws(SyncFailure) {
        let location = Array(storage.location.utf8)
        guard try readLedger({ ledger throws(KeychainFailure) in try ledger.setting(.storage) }) != location else { return }
        try attempt { () throws(KeychainFailure) in
            try keychain.synchronize { ledger, _ throws(KeychainFailure) in
                try ledger.set(.storage, to: location)
                try ledger.set(.storageFailure, to: nil)
            }
        }
    }

    /// Makes this machine another reader of its circle.
    fileprivate func replace(_ former: Membership, by reader: ReaderCredential, at storage: any SyncStorage) throws(SyncFailure) {
        let expiration = try readLedger { ledger throws(KeychainFailure) in try ReaderCredential.expiration(in: ledger) }
        guard former.circle == reader.circle.membership.circle, expiration != nil else {
            throw SyncFailure(.alreadyStarted, "this keychain is in a circle already, and not by a credential of this one")
        }
        guard let lock = try attempt({ () throws(KeychainFailure) in try keychain.lockForAgent() }) else {
            throw SyncFailure(.agentRunning, "an agent synchronizes this keychain with another credential")
        }
        try attempt { () throws(KeychainFailure) in
            try keychain.storeDeviceKeys(reader.keys)
            try keychain.synchronize { ledger, _ throws(KeychainFailure) in
                try reader.replace(former, in: ledger)
                try ledger.set(.storage, to: Array(storage.location.utf8))
            }
        }
        withExtendedLifetime(lock) {}
    }
}

extension SyncFailure {
    /// The failure of a machine whose credential has expired; nil if it has not.
    static func expired(_ expiration: Double, named name: String?, now: Double) -> SyncFailure? {
        guard now >= expiration else { return nil }
        let credential = name.map { "the credential \($0)" } ?? "the credential of this machine"
        return SyncFailure(.expired, "\(credential) has expired on \(day(expiration))")
    }

    /// The day of a date, in UTC.
    static func day(_ seconds: Double) -> String {
        Date(timeIntervalSinceReferenceDate: seconds).formatted(Date.ISO8601FormatStyle().year().month().day())
    }
}
#endif
