// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import Keybag
internal import KeychainCore
package import KeychainEngine
internal import KeychainStore
internal import KeychainSystem
internal import KeychainTestSupport

/// The state of a keychain after a power cut or disk failures, as the engine sees it.
package enum ExaminedKeychain: Sendable {
    /// No keychain exists, and one can be created.
    case absent
    /// The keychain is intact, and an item can be stored.
    case world(KeychainContents)
    /// The keychain is damaged, or cannot be opened, read, or written; with the reason.
    case unusable(String)
}

/// Opens keychains at one path, as a program does after a restart.
package final class KeychainExaminer {
    private static let entitlements = Entitlements(applicationIdentifier: "KeychainTestChild")
    private static let probe = "probe after the restart"
    /// One of this many keychains with a known keybag is nevertheless unlocked with the passcode.
    private static let unlockInterval = 20

    private let home: String
    /// The keys of known keybags, because deriving a key takes longer than everything else.
    private var unlocked: [[[UInt8]]: (passcode: String, keys: UnlockedKeys)] = [:]
    private var knownCount = 0

    package init(home: String) {
        self.home = home
    }

    /// Returns the keychain below `home`, configured for the workload and the examiner.
    package static func keychain(
        home: String, configure: (inout KeychainConfiguration) -> Void = { _ in }
    ) -> LocalKeychain {
        LocalKeychain(home: home) { configuration in
            configuration.useTestPolicy(in: home)
            // Copies of one store are used in several processes at a time, so no keys may stay in the kernel.
            configuration.keyHolder = .processMemory
            // The simulated disk creates files with other inode numbers than the recorded ones.
            configuration.storeOptions.acceptsCopiedAnchor = true
            configure(&configuration)
        }
    }

    /// Reads all items, verifies the keychain, and stores an item; tries `passcodes` in turn if one is set.
    package func look(passcodes: [String]) -> ExaminedKeychain {
        let keychain = Self.keychain(home: home)
        do {
            guard try keychain.sessionStatus().isPasscodeSet else { return try look(in: keychain, keychain, passcode: nil) }
            return try examineUnlocked(in: keychain, passcodes)
        } catch let failure as KeychainFailure {
            return .unusable("\(failure.status.rawValue) \(failure.reason)")
        } catch {
            return .unusable("\(error)")
        }
    }

    private func examineUnlocked(in keychain: LocalKeychain, _ passcodes: [String]) throws -> ExaminedKeychain {
        let store = try SQLiteItemStore(openingAt: home + "/keychain.db")
        defer { store.close() }
        let copies = try store.keybag().copies
        let secret = try KeyFile(directory: home + "/keys", storePath: home + "/keychain.db").deviceSecret(for: store.storeID)
        let keybag = try OpenKeybag(copies: copies, storeID: store.storeID, deviceSecret: secret)
        try store.protect(
            with: keybag.stateCipher, using: keybag.usedCopy,
            anchorPaths: KeychainConfiguration(home: home).anchorPaths(for: store.storeID), checking: .nothing)
        knownCount += 1
        if let (passcode, keys) = unlocked[copies], knownCount % Self.unlockInterval != 0 {
            let view = SealedKeychain(
                store: store, keys: keys, cipher: keybag.cipher, clock: SystemWallClock(), entitlements: Self.entitlements, log: { _ in })
            return try look(in: keychain, view, passcode: passcode)
        }
        guard let passcode = try passcodes.first(where: { try opens(keychain, $0) }) else {
            return .unusable("none of the passcodes opens it")
        }
        defer { keychain.forgetKeys() }
        unlocked[copies] = (passcode, try keybag.unlockedKeys(passcode: Passcode(text: passcode), deviceSecret: secret))
        return try look(in: keychain, keychain, passcode: passcode)
    }

    /// `view` is the unlocked keychain.
    private func look(in keychain: LocalKeychain, _ view: any Keychain, passcode: String?) throws -> ExaminedKeychain {
        var world = KeychainContents()
        world.passcode = passcode
        do throws(KeychainFailure) {
            for (name, value) in try Self.items(in: view) { world.set(name, to: value) }
        } catch {
            guard error.status == .itemNotFound else { throw error }
            guard try keychain.report().store != nil else { return makeKeychain(keychain) }
        }
        let report = try keychain.verify(purgingQuarantine: false)
        guard report.isSound, report.quarantinedCount == 0 else { return .unusable("not sound: \(report)") }
        if let objection = try RecordAudit.with(keychain, { audit throws(KeychainFailure) in try audit.objections() }).first {
            return .unusable(objection)
        }
        return try Self.stores(view) ? .world(world) : .unusable("it returns another value than was stored")
    }

    private func makeKeychain(_ keychain: LocalKeychain) -> ExaminedKeychain {
        do throws(KeychainFailure) {
            return try Self.stores(keychain) ? .absent : .unusable("a new keychain returns another value than was stored")
        } catch {
            return .unusable("no new keychain can be created: \(error.status.rawValue) \(error.reason)")
        }
    }

    private func opens(_ keychain: LocalKeychain, _ passcode: String) throws -> Bool {
        do throws(KeychainFailure) {
            try keychain.unlock(with: passcode)
            return true
        } catch {
            guard error.status == .authFailed else { throw error }
            return false
        }
    }

    private static func stores(_ keychain: any Keychain) throws(KeychainFailure) -> Bool {
        let attributes = ItemAttributes([.account: .string(probe), .service: .string(probe)])
        let secret = Data(probe.utf8)
        _ = try keychain.add(AddRequest(itemClass: .genericPassword, attributes: attributes, secret: secret, accessControl: nil))
        let query = ItemQuery(itemClass: .genericPassword, attributes: attributes)
        return try keychain.copyMatching(MatchRequest(query: query, includesSecrets: true)).first?.secret == secret
    }

    private static func items(in keychain: any Keychain) throws(KeychainFailure) -> [String: String] {
        let found = try keychain.copyMatching(
            MatchRequest(query: ItemQuery(itemClass: .genericPassword, synchronizability: .either), limit: nil, includesSecrets: true))
        var items: [String: String] = [:]
        for item in found {
            let service = item.attributes.text(.service) ?? ""
            // The service contains the name of the valet.
            let valet = WorkloadValet.allCases.first { service.contains("_\($0.rawValue)_") }
            items["\(valet?.rawValue ?? service)/\(item.attributes.text(.account) ?? "")"] = String(
                decoding: item.secret ?? Data(), as: UTF8.self)
        }
        return items
    }
}
