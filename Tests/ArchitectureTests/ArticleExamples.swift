// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: NeverForceUnwrap
// The examples are those of the articles about Valet and KeychainTesting, line for line.

import Foundation
import KeychainServices
import KeychainSync
import KeychainTesting
import KeychainTestingTraits
import Logging
import Testing
import Valet

// MARK: Getting started

struct Luggage {
    private let vault = Valet.valet(with: "luggage", accessibility: .whenUnlocked)

    /// Returns nil only if it is certain that no combination is stored.
    func combination() throws(ValetFailure) -> String? {
        try vault.valueIfPresent(for: .combination)
    }

    func setCombination(_ combination: String) throws(ValetFailure) {
        try vault.set(combination, for: .combination)
    }
}

extension ValetKey<String> {
    static let combination = ValetKey("combination")
}

/// The program of the tutorial, whose lines are at the top level of its file.
func luggageProgram() {
    do {
        let luggage = Luggage()
        if let combination = try luggage.combination() {
            print("The combination has \(combination.count) digits.")
        } else {
            print("New combination:")
            guard let line = readLine(), !line.isEmpty else { exit(2) }
            try luggage.setCombination(line)
        }
    } catch {
        print(error.localizedDescription)
        exit(1)
    }
}

#if !canImport(Darwin)
@Suite(.inMemoryKeychain) struct LuggageTests {
    @Test func remembersTheCombination() throws {
        let luggage = Luggage()
        #expect(try luggage.combination() == nil)
        try luggage.setCombination("12345")
        #expect(try luggage.combination() == "12345")
    }

    #if !canImport(Darwin)
    @Test func aLockedKeychainIsNotAnEmptyOne() throws {
        try Luggage().setCombination("12345")
        try InMemoryKeychain.current?.lock()
        let failure = #expect(throws: ValetFailure.self) { try Luggage().combination() }
        #expect(failure?.reason == .locked)
    }
    #endif
}
#endif

// MARK: The trait

#if !canImport(Darwin)
@Suite(.inMemoryKeychain) struct TokenTests {
    @Test func remembersTheToken() throws {
        let vault = Valet.valet(with: "Druidia", accessibility: .whenUnlocked)
        try vault.setString("12345", forKey: "Skroob")
        #expect(try vault.string(forKey: "Skroob") == "12345")
    }
}
#endif

// MARK: Choosing an accessibility

func waitForToken(in vault: Valet) async throws -> String {
    var changes = vault.changes.makeAsyncIterator()
    while true {
        do {
            return try await vault.asynchronously.value(for: ValetKey<String>("token"))
        } catch let failure as ValetFailure where failure.reason == .locked {
            guard await changes.next() != nil else { throw CancellationError() }
        }
    }
}

// MARK: Servers and containers

func handle(_ vault: Valet) async throws -> String {
    let token = try await vault.asynchronously.string(forKey: "token")
    return "Bearer \(token)"
}

actor Database {
    private var password: String?

    func connect(with password: String) {
        guard password != self.password else { return }
        self.password = password
    }
}

func keepConnected(_ database: Database, _ vault: Valet) async throws {
    let changes = vault.changes
    await database.connect(with: try await vault.asynchronously.string(forKey: "database-password"))
    for await _ in changes {
        guard let password = try? await vault.asynchronously.string(forKey: "database-password") else { continue }
        await database.connect(with: password)
    }
}

extension Database {
    fileprivate var currentPassword: String? { password }
}

// MARK: Migrating from Apple-only code

func token(in vault: Valet) throws -> String? {
    do {
        return try vault.string(forKey: "token")
    } catch KeychainError.itemNotFound {
        return nil
    }
}

// MARK: Troubleshooting

/// Compiled but not called: the log of a process can be set up once only.
func silenceTheLog() {
    LoggingSystem.bootstrap { label in
        if label == "keychain" { return SwiftLogNoOpLogHandler() }
        return StreamLogHandler.standardError(label: label)
    }
}

// MARK: Synchronization

#if !canImport(Darwin)
func inviteServer(through folder: FolderStorage, confirm: (String, String) async -> Bool) async throws {
    let invitation = try await KeychainSync.invite(on: folder, as: .reader)
    print("Code for the server: \(invitation.code.text)")
    let request = try await invitation.request()
    if await confirm(request.deviceName, request.number) { try await request.admit() } else { await request.refuse() }
}

func synchronize(through path: String, code: String?, confirm: (String) async -> Bool) async throws {
    let folder = FolderStorage(path: path)
    if let code {
        let joining = try await KeychainSync.join(on: folder, code: .code(code), deviceName: "server-1")
        guard await confirm(joining.number) else { return await joining.refuse() }
        try await joining.confirm()
    }
    try await SyncAgent(on: folder).run()
}

func serve(from storage: any SyncStorage, credentialPath: String, handleRequests: (Valet) async throws -> Void) async throws {
    try await KeychainSync.join(on: storage, credential: SyncCredential(path: credentialPath))
    let agent = try SyncAgent(on: storage)
    let synchronization = Task { try await agent.run() }
    defer { synchronization.cancel() }
    try await handleRequests(Valet.iCloudValet(with: "web", accessibility: .afterFirstUnlock))
}
#endif

@Suite("Examples of the articles about Valet")
struct ArticleExamples {
    @Test("The program of the tutorial finds the combination", .inMemoryKeychain)
    func tutorial() throws {
        try Luggage().setCombination("12345")
        luggageProgram()
    }

    @Test("A valet with another accessibility receives the values, once", .inMemoryKeychain)
    func changingTheAccessibility() throws {
        try Valet.valet(with: "Druidia", accessibility: .whenUnlocked).setString("12345", forKey: "Skroob")
        for _ in 1...2 {
            let old = Valet.valet(with: "Druidia", accessibility: .whenUnlocked)
            let new = Valet.valet(with: "Druidia", accessibility: .afterFirstUnlock)
            do {
                try new.migrateObjects(from: old, removeOnCompletion: true)
            } catch KeychainError.itemNotFound {
                // There is nothing left to move.
            }
            #expect(try new.string(forKey: "Skroob") == "12345" && old.allKeys().isEmpty)
        }
    }

    #if !canImport(Darwin)
    @Test("A program waits for an unlock by looking again after each change", .inMemoryKeychain, .timeLimit(.minutes(10)))
    func waiting() async throws {
        let vault = Valet.valet(with: "Druidia", accessibility: .whenUnlocked)
        try vault.setString("12345", forKey: "token")
        let keychain = try #require(InMemoryKeychain.current)
        try keychain.lock()
        async let token = waitForToken(in: vault)
        try keychain.unlock()
        #expect(try await token == "12345")
    }

    @Test("The reason of an error is found without typed keys", .inMemoryKeychain)
    func explaining() throws {
        let vault = Valet.valet(with: "Druidia", accessibility: .whenUnlocked)
        try vault.setString("12345", forKey: "token")

        do {
            let token = try ValetFailure.explaining { () throws(KeychainError) in try vault.string(forKey: "token") }
            print("The token has \(token.count) characters.")
        } catch {
            switch error.reason {
            case .locked: print("Run `valet unlock`.")
            case .damaged: print("Restore a backup.")
            default: print(error)
            }
        }
        try InMemoryKeychain.current?.damageItems(account: "token")
        let failure = #expect(throws: ValetFailure.self) {
            try ValetFailure.explaining { () throws(KeychainError) in try vault.string(forKey: "token") }
        }
        #expect(failure?.reason == .damaged)
    }

    @Test(.inMemoryKeychain) func readsOnAQueue() async throws {
        let vault = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        try vault.setString("12345", forKey: "Skroob")
        let keychain = try #require(InMemoryKeychain.current)
        let combination = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(returning: keychain.perform { try? vault.string(forKey: "Skroob") })
            }
        }
        #expect(combination == "12345")
    }

    @Test("A keychain without the trait")
    func testTheVaultIsEmpty() throws {
        try withInMemoryKeychain {
            let vault = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
            let keys = try vault.allKeys()
            assert(keys.isEmpty)
        }
    }
    #endif

    @Test("Tasks and asynchronous forms are inside the keychain of a test; detached tasks are outside", .inMemoryKeychain)
    func tasks() async throws {
        let vault = Valet.valet(with: "Druidia", accessibility: .whenUnlocked)
        try vault.setString("12345", forKey: "token")
        let value = try await Task { try await handle(vault) }.value
        #expect(value == "Bearer 12345")
        let failure = await #expect(throws: ValetFailure.self) {
            try await Task.detached { try vault.value(for: ValetKey<String>("token")) }.value
        }
        #expect(failure?.reason == .unavailable && failure?.failureReason?.contains("perform") == true)
    }

    @Test("A program finds a value that was stored for it", .inMemoryKeychain)
    func valueForAnotherProgram() throws {
        try Valet.valet(with: "ghx", accessibility: .afterFirstUnlock).setString("12345", forKey: "token")
        let vault = Valet.valet(with: "ghx", accessibility: .afterFirstUnlock)
        let token = try vault.string(forKey: "token")
        #expect(token == "12345")
    }

    @Test("A group in the entitlements is shared", .inMemoryKeychain(accessGroups: ["group.com.example.shared"]))
    func sharedGroup() throws {
        let group = SharedGroupIdentifier(groupPrefix: "group", nonEmptyGroup: "com.example.shared")!
        let shared = Valet.sharedGroupValet(with: group, accessibility: .whenUnlocked)
        try shared.setString("12345", forKey: "Skroob")
        #expect(try shared.string(forKey: "Skroob") == "12345")
    }

    @Test("A password that is replaced is used", .inMemoryKeychain, .timeLimit(.minutes(10)))
    func replacedPassword() async throws {
        let vault = Valet.valet(with: "server", accessibility: .afterFirstUnlock)
        try vault.setString("swordfish", forKey: "database-password")
        let database = Database()
        let connecting = Task { try await keepConnected(database, vault) }
        while await database.currentPassword != "swordfish" { await Task.yield() }
        try vault.setString("marlin", forKey: "database-password")
        while await database.currentPassword != "marlin" { await Task.yield() }
        connecting.cancel()
    }

    @Test("Items that the program stored itself are read in place, or copied", .inMemoryKeychain)
    func ownItems() throws {
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "com.example.spaceball",
            kSecAttrAccount as String: "token", kSecValueData as String: Data("12345".utf8),
            kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlock,
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
        do {
            let existing = Valet.valet(withExplicitlySet: "com.example.spaceball", accessibility: .afterFirstUnlock)
            let token = try existing.string(forKey: "token")
            #expect(token == "12345")
        }

        let items: [String: AnyHashable] = [
            kSecClass as String: kSecClassGenericPassword as String,
            kSecAttrService as String: "com.example.spaceball",
        ]
        let vault = Valet.valet(with: "spaceball", accessibility: .afterFirstUnlock)
        do {
            try vault.migrateObjects(matching: items, removeOnCompletion: true)
        } catch KeychainError.itemNotFound {
            // An earlier start has moved them.
        }
        #expect(try token(in: vault) == "12345")
        #expect(try token(in: Valet.valet(with: "other", accessibility: .afterFirstUnlock)) == nil)
    }

    @Test("Items of another library are copied at each start, unless the valet has the key", .inMemoryKeychain)
    func copyingAtEachStart() throws {
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "com.example.app",
            kSecAttrAccount as String: "token", kSecValueData as String: Data("12345".utf8),
        ]
        // Before the first start, and again by an earlier version of the program.
        for start in 0..<3 {
            let items: [String: AnyHashable] = [
                kSecClass as String: kSecClassGenericPassword as String,
                kSecAttrService as String: "com.example.app",
            ]
            let vault = Valet.valet(with: "account", accessibility: .afterFirstUnlock)
            do {
                try vault.migrateObjects(matching: items) { item in
                    guard let key = item.key as? String else { throw MigrationError.keyToMigrateInvalid }
                    return try vault.containsObject(forKey: key) ? nil : MigratableKeyValuePair(key: key, value: item.value)
                }
            } catch KeychainError.itemNotFound {
                // The other library has stored nothing.
            }
            #expect(try vault.containsObject(forKey: "token") == (start > 0))
            if start == 0 { #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess) }
        }
    }

    @Test("Items whose keys are bytes are moved once", .inMemoryKeychain)
    func keysAsBytes() throws {
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "com.example.app",
            kSecAttrAccount as String: Data("token".utf8), kSecValueData as String: Data("12345".utf8),
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
        // Each start of the program.
        for _ in 0..<2 {
            let items: [String: AnyHashable] = [
                kSecClass as String: kSecClassGenericPassword as String,
                kSecAttrService as String: "com.example.app",
            ]
            let vault = Valet.valet(with: "account", accessibility: .whenUnlocked)
            do {
                try vault.migrateObjects(matching: items, removeOnCompletion: true)
            } catch KeychainError.itemNotFound {
                // There is nothing left to move.
            }
            #expect(try vault.string(forKey: "token") == "12345")
        }
    }
}
