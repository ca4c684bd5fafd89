// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainCore
import KeychainEngine
import KeychainServices
import KeychainTestSupport
import Testing

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

    @Test("Case 81: after backup and restore, references lead to the same items, attributes and secrets")
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
                #expect(saved.savedCount == items.count && saved.leftBehindCount == 0 && restored.addedCount == items.count)
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

    @Test("Case 81: an item of this device only is absent after a restore, and can be added")
    func thisDeviceOnly() throws {
        try KeychainFolder.with { old in
            try KeychainFolder.with { new in
                let item = Item.generic("local").with(kSecAttrAccessible, kSecAttrAccessibleWhenUnlockedThisDeviceOnly)
                old.inFreshProcess { #expect(add(item).status == errSecSuccess && add(Item.generic()).status == errSecSuccess) }
                let (saved, _) = try carry(from: old, to: new)
                #expect(saved.thisDeviceOnlyCount == 1)
                new.inFreshProcess {
                    #expect(find(Item.genericQuery("local")).status == errSecItemNotFound)
                    #expect(add(item).status == errSecSuccess)
                }
            }
        }
    }

    @Test("An item that was deleted is not in a backup, nor is what is left of a synchronizable one")
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
