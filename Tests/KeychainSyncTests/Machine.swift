// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainTestSupport
import SyncCore
import Testing

/// A machine with a keychain in a directory of its own.
struct Machine {
    let home: String
    let keychain: LocalKeychain

    /// Makes the directory.
    ///
    /// `isSynchronizing`: whether the keychain has an empty ledger already. `keys`: where this process keeps unlocked keys.
    init(_ name: String, in directory: String, isSynchronizing: Bool = true, keys: ProcessMemoryKeys = .shared) throws {
        home = directory + "/" + name
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        keychain = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory) { $0.processKeys = keys }
        if isSynchronizing { try keychain.startSynchronizing() }
    }

    /// Runs `body` with this machine's keychain in place of the user's.
    func use<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
        try await CurrentKeychain.$bound.withValue(keychain) { try await body() }
    }

    /// Founds a circle.
    func found(_ name: String) throws {
        let keys = try keychain.makeDeviceKeys()
        let cipher = LocalKeychain.circleCipher
        let nonce = try cipher.randomBytes(32)
        let deviceName = try #require(DeviceName(name))
        try keychain.synchronize { ledger, _ throws(KeychainFailure) in
            _ = try Membership.found(name: deviceName, keys: keys, nonce: nonce, cipher: cipher, in: ledger)
        }
    }

    /// Joins the circle of another machine, which admits this one.
    func join(_ owner: Machine, as name: String, _ role: DeviceRole = .owner) async throws {
        let keys = try keychain.makeDeviceKeys()
        let cipher = LocalKeychain.circleCipher
        try await owner.perform(.admit(keys.publicKeys, role))
        let (circle, statements) = try owner.keychain.readLedger { ledger throws(KeychainFailure) in
            (try Membership.stored(in: ledger)?.circle, try ledger.statements())
        }
        let membership = Membership(circle: try #require(circle), device: DeviceID(of: keys.publicKeys, role: role, cipher: cipher))
        let deviceName = try #require(DeviceName(name))
        try keychain.synchronize { ledger, _ throws(KeychainFailure) in
            try membership.store(name: deviceName, statements: statements, in: ledger)
        }
    }

    /// Does what a person has asked for.
    func perform(_ command: SyncCommand) async throws {
        _ = try await EngineHost(keychain, clock: SystemClock()).step([.command(command)])
    }

    func put(_ account: String, _ secret: String, _ accessibility: ItemAccessibility = .afterFirstUnlock) throws {
        let attributes = ItemAttributes([.account: .string(account), .service: .string("test"), .synchronizable: .number(1)])
        do throws(KeychainFailure) {
            _ = try keychain.add(
                AddRequest(
                    itemClass: .genericPassword, attributes: attributes, secret: Data(secret.utf8),
                    accessControl: AccessControl(accessibility)))
        } catch {
            guard error.status == .duplicateItem else { throw error }
            try keychain.update(UpdateRequest(query: query(account), secret: Data(secret.utf8)))
        }
    }

    func delete(_ account: String) throws { try keychain.delete(DeleteRequest(query: query(account))) }

    func secret(_ account: String) throws -> String? {
        do throws(KeychainFailure) {
            let items = try keychain.copyMatching(MatchRequest(query: query(account), includesSecrets: true))
            return items.first?.secret.map { String(decoding: $0, as: UTF8.self) }
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return nil
        }
    }

    private func query(_ account: String) -> ItemQuery {
        ItemQuery(
            itemClass: .genericPassword, attributes: ItemAttributes([.account: .string(account), .service: .string("test")]),
            synchronizability: .synchronizable)
    }
}

struct SystemClock: WallClock {
    func now() -> Double { Date().timeIntervalSinceReferenceDate }
}
