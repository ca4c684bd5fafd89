// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting
import Testing

@testable import Keybag

@Suite("What a chip sealed, as a keybag keeps it")
struct SealedObjectTests {
    private static func object() throws -> SealedObject {
        try InMemorySealingDevice().seal(SecretBytes(randomByteCount: 32), authorization: .none)
    }

    @Test("Encoded and read again it is the same")
    func readAgain() throws {
        let object = try Self.object()
        #expect(try SealedObject(encoded: object.encoded) == object)
    }

    @Test("Cut anywhere, or with anything behind it, it is none")
    func cut() throws {
        let encoded = try Self.object().encoded
        for count in encoded.indices {
            #expect(throws: SealedObject.EncodingFailure.malformed) { try SealedObject(encoded: encoded.prefix(count)) }
        }
        #expect(throws: SealedObject.EncodingFailure.malformed) { try SealedObject(encoded: encoded + [0]) }
    }

    @Test("A later version is told from damage")
    func newer() throws {
        var encoded = try Self.object().encoded
        encoded[0] = 2
        #expect(throws: SealedObject.EncodingFailure.newerVersion) { try SealedObject(encoded: encoded) }
        encoded[0] = 0
        #expect(throws: SealedObject.EncodingFailure.malformed) { try SealedObject(encoded: encoded) }
    }

    @Test("A part that is too long, or lies about its length, is refused")
    func sizes() throws {
        let object = try Self.object()
        func refuses(name: [UInt8]? = nil, publicArea: [UInt8]? = nil, privateArea: [UInt8]? = nil) {
            let altered = SealedObject(
                rootKeyName: name ?? object.rootKeyName, publicArea: publicArea ?? object.publicArea,
                privateArea: privateArea ?? object.privateArea)
            #expect(throws: SealedObject.EncodingFailure.malformed) { try SealedObject(encoded: altered.encoded) }
        }
        refuses(name: [])
        refuses(name: Array(repeating: 1, count: 67))
        refuses(publicArea: [])
        refuses(publicArea: [0, 2, 1])
        refuses(publicArea: [4, 0] + Array(repeating: 1, count: 1_024))
        refuses(privateArea: [1, 0, 1])
        refuses(privateArea: [0, 0])
    }

    @Test("A keybag whose protector is a chip names what that chip is to unseal, before anything is authenticated")
    func hint() throws {
        let store = try ChipStore()
        let hints = try KeybagDocument.protectorHints(in: [store.keybag.document.encoded])
        let secret = try store.chip.unseal(try #require(hints.first).sealedDeviceSecret(), authorization: .none)
        #expect(secret.copiedBytes() == store.deviceSecret.secret.copiedBytes())
    }
}
