// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import Glibc
import KeychainServices
import Testing

/// Where this keychain leaves Apple's behaviour on purpose: a file that cannot be read is kept as it is until a person decides.
@Suite("The database file, cases of the specification as amended")
struct StoreFileCases {
    /// What the database may have been replaced by.
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

    @Test("Case 55: when a database is replaced under a running process, a change is refused and not written into the file that is gone")
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
        "Case 56: a database that others may use is refused, and works again once it is private", arguments: [0o644, 0o640, 0o660, 0o604])
    func looseMode(mode: Int) throws {
        try unusableMode(mode)
    }

    @Test("Case 56: a database that may not be read is unavailable, and works again once it may", .disabled(if: isSuperuser))
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

    @Test("Case 57: a database that may only be read can be searched, and every change says read-only", .disabled(if: isSuperuser))
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

    @Test("Where there is no database yet, nothing is found and nothing is made", arguments: [Verb.find, .update, .delete])
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

    @Test("What is refused makes no database")
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

    @Test("What one process stored, the next one finds, changes and deletes")
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
#endif
