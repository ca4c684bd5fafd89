// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainSystem
import KeychainTestSupport
import Testing

@Suite("After a lock, keychaind does not have the locked class keys in memory", .blocking, .requiresRoot)
struct KeychaindMemoryTests {
    private static let passcode = "swordfish"
    private static let passcodeProtected: Set<ItemAccessibility> = [
        .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly,
    ]

    @Test("A lock removes the keys of items that need an unlocked keychain, and a lock of everything all that the passcode protects")
    func classKeys() throws {
        try withTemporaryDirectory { directory in
            let socket = directory + "/socket"
            let service = try ChildProcess(
                BuiltProgram.path(of: "keychaind"),
                ["--socket", socket, "--directory", directory + "/keychains", "--entitlements", directory + "/entitlements"])
            waitUntil { FileManager.default.fileExists(atPath: socket) }
            let embedded = try LocalKeychain.withCheapPasscode(home: directory + "/home", holder: .processMemory)
            try embedded.setPasscode(Passcode(text: Self.passcode), autoLock: .never)
            try embedded.addItemOfEachClass(includingBoundToPasscode: true)
            let connector = DaemonClient.connector(toSocketAt: socket)
            let storeID = try embedded.handOver(to: connector).storeID
            let store = try OpenedStore(home: "\(directory)/keychains/\(CurrentProcess.effectiveUserID)")
            let classKeys = try store.classKeys(of: store.unlockedKeys(Self.passcode))
            #expect(Set(classKeys.keys.map(\.accessibility)) == Set(ItemAccessibility.allCases))

            let client = DaemonKeychain(DaemonClient(entitlements: embedded.entitlements, storeID: storeID, connector: connector))
            try client.unlock(Passcode(text: Self.passcode), autoLock: .never)
            for accessibility in ItemAccessibility.allCases { try Self.read(accessibility, in: client) }
            try client.lock(.whenUnlocked)
            try expectNoKeys(classKeys.filter { Self.passcodeProtected.contains($0.key.accessibility) }, in: service)
            try Self.read(.afterFirstUnlock, in: client)
            try client.lock(.everything)
            let always: Set<ItemAccessibility> = [.always, .alwaysThisDeviceOnly]
            try expectNoKeys(classKeys.filter { !always.contains($0.key.accessibility) }, in: service)

            // The search finds keys where there are any.
            let search = MemorySearch(secrets: Self.named(classKeys.filter { $0.key.accessibility == .alwaysThisDeviceOnly }))
            try Self.read(.alwaysThisDeviceOnly, in: client)
            #expect(try !search.namesFound(in: service.processID).isEmpty)
        }
    }

    private static func read(_ accessibility: ItemAccessibility, in keychain: DaemonKeychain) throws {
        let query = ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string(accessibility.rawValue)]))
        let items = try keychain.copyMatching(MatchRequest(query: query, includesSecrets: true))
        #expect(items.first?.secret == Data("secret of \(accessibility.rawValue)".utf8))
    }

    private func expectNoKeys(_ keys: [ClassKeyID: [UInt8]], in service: ChildProcess) throws {
        #expect(!keys.isEmpty)
        let finding = try MemorySearch(secrets: Self.named(keys)).run(on: service.processID)
        #expect(finding.searchedByteCount > finding.unreadableByteCount)
        #expect(finding.names == [])
    }

    private static func named(_ keys: [ClassKeyID: [UInt8]]) -> [String: [UInt8]] {
        Dictionary(uniqueKeysWithValues: keys.map { ("\($0.key.accessibility.rawValue) \($0.key.generation)", $0.value) })
    }
}
