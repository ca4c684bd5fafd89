// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainServices
import KeychainTestSupport
import Testing

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
/// A deliberate difference from Apple's keychain: an unreadable file stays unchanged until a person decides.
@Suite("The database file, cases of the specification")
struct StoreFileCases {
    /// Files that replace the database.
    enum Garbage: CaseIterable, Sendable {
        case noise
        case noiseBehindSQLiteHeader
        case text
        case firstPageOnly
        case nothing

        func bytes(insteadOf original: Data) -> Data {
            let noise = Data((0..<16384).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 7) })
            return switch self {
            case .noise: noise
            case .noiseBehindSQLiteHeader: original.prefix(16) + noise
            case .text: Data("This is not a database.\n".utf8)
            case .firstPageOnly: original.prefix(4096)
            case .nothing: Data()
            }
        }
    }

    /// Whether the system lets this process do what a file's mode forbids.
    static let isSuperuser = geteuid() == 0

    @Test(
        "Case 55: a database replaced by garbage makes the keychain unavailable, and is neither deleted nor replaced",
        arguments: Garbage.allCases)
    func garbage(garbage: Garbage) throws {
        try KeychainFolder.with { folder in
            folder.inFreshProcess { #expect(add(Item.generic()).status == errSecSuccess) }
            let original = try folder.storeBytes
            let bytes = garbage.bytes(insteadOf: original)
            try folder.replaceStore(with: bytes)
            let files = try folder.files

            for _ in 1...2 {
                folder.inFreshProcess {
                    for verb in Verb.allCases { #expect(verb.status(Item.generic()) == errSecNotAvailable, "\(verb)") }
                }
            }
            #expect(try folder.storeBytes == bytes)
            #expect(try folder.files == files)

            try folder.replaceStore(with: original)
            folder.inFreshProcess { #expect(secret(of: Item.genericQuery()) == Item.secret) }
        }
    }

    @Test("Case 55: if the database is replaced under a running process, a change fails and is not written to the deleted file")
    func garbageWhileOpen() throws {
        try KeychainFolder.with { folder in
            try folder.inFreshProcess {
                #expect(add(Item.generic()).status == errSecSuccess)
                let bytes = Data(repeating: 0x5a, count: 16384)
                try folder.replaceStore(with: bytes)
                #expect(add(Item.generic("other")).status == errSecNotAvailable)
                #expect(update(Item.genericQuery(), [kSecValueData: Data()]) == errSecNotAvailable)
                #expect(delete(Item.genericQuery()) == errSecNotAvailable)
                #expect(try folder.storeBytes == bytes)
            }
        }
    }

    @Test(
        "Case 56: a database that other users can access is rejected, and works again once it is private",
        arguments: [0o644, 0o640, 0o660, 0o604])
    func looseMode(mode: Int) throws {
        try unusableMode(mode)
    }

    @Test(
        "Case 56: a database without read permission is unavailable, and works again once permission is granted", .disabled(if: isSuperuser)
    )
    func unreadable() throws {
        try unusableMode(0o000)
    }

    private func unusableMode(_ mode: Int) throws {
        try KeychainFolder.with { folder in
            folder.inFreshProcess { #expect(add(Item.generic("first")).status == errSecSuccess) }
            try folder.inFreshProcess {
                try folder.setMode(mode)
                #expect(add(Item.generic()).status == errSecNotAvailable)
                #expect(find(Item.generic()).status == errSecNotAvailable)
                try folder.setMode(0o600)
                #expect(add(Item.generic()).status == errSecSuccess)
                #expect(add(Item.generic()).status == errSecDuplicateItem)
                #expect(find(Item.generic()).status == errSecSuccess)
                #expect(delete(Item.generic()) == errSecSuccess)
                #expect(find(Item.genericQuery("first")).status == errSecSuccess)
            }
        }
    }

    @Test("Case 57: a database without write permission can be searched, and every change reports 'read-only'", .disabled(if: isSuperuser))
    func readOnly() throws {
        try KeychainFolder.with { folder in
            folder.inFreshProcess { #expect(add(Item.generic()).status == errSecSuccess) }
            try folder.setMode(0o400)
            folder.inFreshProcess {
                #expect(secret(of: Item.genericQuery()) == Item.secret)
                #expect(add(Item.generic("other")).status == errSecReadOnly)
                #expect(update(Item.genericQuery(), [kSecAttrLabel: "label"]) == errSecReadOnly)
                #expect(delete(Item.genericQuery()) == errSecReadOnly)
                #expect(secret(of: Item.genericQuery()) == Item.secret)
            }
        }
    }

    @Test("Without a database, nothing is found and no database is created", arguments: [Verb.find, .update, .delete])
    func noDatabase(verb: Verb) throws {
        try KeychainFolder.with { folder in
            folder.inFreshProcess {
                #expect(verb.status(Item.generic()) == errSecItemNotFound)
                #expect(verb.status(Item.generic().with(kSecAttrAccessGroup, "foreign")) == errSecMissingEntitlement)
                #expect(verb.status(Item.generic().without(kSecClass)) == errSecParam)
                #expect(update(Item.genericQuery(), [kSecAttrAccessGroup: "foreign"]) == errSecMissingEntitlement)
            }
            let files = try folder.files
            #expect(files.isEmpty)
        }
    }

    @Test("A rejected call creates no database")
    func refusedAdd() throws {
        try KeychainFolder.with { folder in
            folder.inFreshProcess {
                #expect(add(Item.generic().with(kSecAttrAccessGroup, "foreign")).status == errSecMissingEntitlement)
                #expect(add(Item.generic().with(kSecMatchLimit, 1)).status == errSecParam)
                #expect(add([kSecClass: kSecClassKey]).status == errSecUnimplemented)
            }
            let files = try folder.files
            #expect(files.isEmpty)
        }
    }

    @Test("A process finds, changes and deletes items that an earlier process stored")
    func nextProcess() throws {
        try KeychainFolder.with { folder in
            let reference = folder.inFreshProcess { add(Item.internet().with(kSecReturnPersistentRef, true)).data }
            let query: ItemDictionary = [kSecValuePersistentRef: try #require(reference)]
            folder.inFreshProcess { #expect(secret(of: query) == Item.secret) }
            folder.inFreshProcess { #expect(update(query, [kSecAttrServer: "new.example.com", kSecValueData: Data()]) == errSecSuccess) }
            folder.inFreshProcess { #expect(secret(of: Item.internetQuery(server: "new.example.com")) == Data()) }
            folder.inFreshProcess { #expect(delete(query) == errSecSuccess) }
            folder.inFreshProcess { #expect(find(query).status == errSecItemNotFound) }
        }
    }
}

@Suite("Backups, cases of the specification")
struct BackupCases {
    /// Takes a backup of one keychain and restores it into another one.
    private func carry(from old: KeychainFolder, to new: KeychainFolder) throws -> (BackupSummary, RestoreSummary) {
        try withTemporaryDirectory { directory in
            let path = directory + "/backup"
            let saved = try old.keychain.createBackup(atPath: path, password: Passcode(text: "a password"), replacing: false)
            let restored = try new.keychain.restoreBackup(atPath: path, password: Passcode(text: "a password"), dryRun: false)
            return (saved, restored)
        }
    }

    @Test("Case 81: after backup and restore, references find the same items, attributes and secrets")
    func referencesSurvive() throws {
        try KeychainFolder.with { old in
            try KeychainFolder.with { new in
                let items: [ItemDictionary] = [
                    Item.generic(), Item.internet(), Item.generic("cloud").with(kSecAttrSynchronizable, true),
                    Item.generic("other group").with(kSecAttrLabel, "label").with(kSecAttrAccessible, kSecAttrAccessibleAfterFirstUnlock),
                ]
                let references = try old.inFreshProcess {
                    try items.map { try #require(add($0.with(kSecReturnPersistentRef, true)).data) }
                }
                let before = old.inFreshProcess { references.map { attributes(of: [kSecValuePersistentRef: $0]) } }
                let (saved, restored) = try carry(from: old, to: new)
                #expect(saved.savedCount == items.count && restored.addedCount == items.count)
                #expect(saved.thisDeviceOnlyCount + saved.constrainedCount + saved.unreadableCount == 0)
                new.inFreshProcess {
                    for (reference, before) in zip(references, before) {
                        #expect(attributes(of: [kSecValuePersistentRef: reference])?.isEqual(to: before) == true)
                        #expect(secret(of: [kSecValuePersistentRef: reference]) == Item.secret)
                    }
                    #expect(secret(of: Item.genericQuery()) == Item.secret)
                    #expect(add(Item.generic()).status == errSecDuplicateItem)
                }
            }
        }
    }

    @Test("Case 81: an item for this device only is absent after a restore, and can be added", arguments: [false, true])
    func thisDeviceOnly(isSynchronizable: Bool) throws {
        try KeychainFolder.with { old in
            try KeychainFolder.with { new in
                let item = Item.generic("local").with([
                    kSecAttrAccessible: kSecAttrAccessibleWhenUnlockedThisDeviceOnly, kSecAttrSynchronizable: isSynchronizable,
                ])
                old.inFreshProcess { #expect(add(item).status == errSecSuccess && add(Item.generic()).status == errSecSuccess) }
                let (saved, _) = try carry(from: old, to: new)
                #expect(saved.thisDeviceOnlyCount == 1)
                new.inFreshProcess {
                    let either = Item.genericQuery("local").with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)
                    #expect(find(either).status == errSecItemNotFound)
                    #expect(add(item).status == errSecSuccess)
                }
            }
        }
    }

    @Test("A backup contains neither deleted items nor tombstones")
    func deletedItems() throws {
        try KeychainFolder.with { old in
            try KeychainFolder.with { new in
                let cloud = Item.generic("cloud").with(kSecAttrSynchronizable, true)
                old.inFreshProcess {
                    #expect(add(cloud).status == errSecSuccess && add(Item.generic()).status == errSecSuccess)
                    #expect(delete(Item.genericQuery("cloud").with(kSecAttrSynchronizable, true)) == errSecSuccess)
                }
                let (saved, _) = try carry(from: old, to: new)
                #expect(saved.savedCount == 1)
                new.inFreshProcess { #expect(add(cloud).status == errSecSuccess) }
            }
        }
    }
}
#endif
