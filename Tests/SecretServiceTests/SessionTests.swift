// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import CSystemdShims
import Foundation
import Keybag
import KeychainTestSupport
import Testing

@testable import SecretService
@testable import ValetCLI

private struct SessionVectors: Decodable {
    struct Agreement: Decodable, CustomTestStringConvertible {
        let name: String
        let privateKey, publicKey, secret, parameters, plaintext, value: Hexadecimal

        var testDescription: String { name }
    }

    let agreements: [Agreement]
    let refused: [Hexadecimal]

    static func load() throws -> SessionVectors { try TestVectors.load("secret-service-sessions.json") }
}

@Suite("Encryption of a session")
struct SessionCipherTests {
    // KWallet lost secrets now and then, because it did not pad such numbers.
    @Test("Another implementation has the same keys, also with leading zeros in a public key or a shared secret (KWallet 307db626)")
    func vectors() throws {
        for vector in try SessionVectors.load().agreements {
            let (privateKey, publicKey) = (vector.privateKey.bytes, vector.publicKey.bytes)
            let stripped = Array(publicKey.drop { $0 == 0 })
            // Some clients strip zeros, and some add one.
            for key in [publicKey, stripped, [0] + publicKey] {
                #expect(KeyAgreement.secret(privateKey: privateKey, publicKey: Data(key)) == vector.secret.bytes, "\(vector.name)")
            }
            let cipher = SessionCipher(sharedSecret: Data(vector.secret.bytes))
            let (value, parameters, plaintext) = (
                Data(vector.value.bytes), Data(vector.parameters.bytes), Data(vector.plaintext.bytes)
            )
            #expect(cipher.decrypt(value, parameters: parameters) == plaintext)
        }
    }

    @Test("A public key of which everyone knows the result is refused: 0, 1, p - 1, and numbers from p on")
    func refusedKeys() throws {
        let vectors = try SessionVectors.load()
        let privateKey = try #require(vectors.agreements.first).privateKey.bytes
        for refused in vectors.refused {
            #expect(KeyAgreement.secret(privateKey: privateKey, publicKey: Data(refused.bytes)) == nil)
        }
        #expect(throws: BusError.self) { try KeyAgreement.agree(Data([1])) }
        let (publicKey, cipher) = try KeyAgreement.agree(Data([2]))
        // With the generator as its public key, the other party has the private key 1, and the public key is the shared secret.
        let encrypted = try #require(SessionCipher(sharedSecret: publicKey).encrypt(Data("secret".utf8)))
        #expect(publicKey.count == KeyAgreement.byteCount)
        #expect(cipher.decrypt(encrypted.value, parameters: encrypted.parameters) == Data("secret".utf8))
    }

    @Test(
        "A secret is encrypted differently each time, decrypts to itself, and a damaged one is refused",
        arguments: [0, 1, 15, 16, 17, 70_000])
    func roundTrip(byteCount: Int) throws {
        let cipher = SessionCipher(sharedSecret: Data(repeating: 7, count: 128))
        let secret = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0) })
        let (first, second) = (try #require(cipher.encrypt(secret)), try #require(cipher.encrypt(secret)))
        #expect(first.parameters != second.parameters && first.value != second.value)
        #expect(first.value.count == (byteCount / 16 + 1) * 16 && first.parameters.count == 16)
        #expect(cipher.decrypt(first.value, parameters: first.parameters) == secret)
        #expect(cipher.decrypt(first.value.dropLast(), parameters: first.parameters) == nil)
        #expect(cipher.decrypt(first.value, parameters: first.parameters.dropLast()) == nil)
        #expect(cipher.decrypt(Data(), parameters: first.parameters) == nil)
        #expect(cipher.decrypt(first.value, parameters: second.parameters) != secret)
    }
}

@Suite("Sessions on the bus", .blocking, .requiresMessageBus)
struct SessionTests {
    @Test("A session with encryption transfers secrets in both directions, with a short public key too (SecretStorage 48)")
    func agreement() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        let vectors = try SessionVectors.load().agreements
        for vector in vectors {
            let key = Array(vector.publicKey.bytes.drop { $0 == 0 })
            let reply = try client.openSession(Desktop.agreement, .variant(signature: "ay", .bytes(key)))
            let session = try #require(reply.last?.text)
            guard case .variant("ay", .bytes(let publicKey))? = reply.first else {
                Issue.record("no public key")
                return
            }
            #expect(publicKey.count == 128)
            // The vector has one party only; a session with the own private key shows that the other direction works.
            #expect(try client.error(session, .session, "Close") == nil)
        }
        var privateKey = [UInt8](repeating: 0, count: 128)
        var publicKey = privateKey
        // As many bytes as the function writes.
        #expect(unsafe keychain_agreement_make_keys(&privateKey, &publicKey))
        let reply = try client.openSession(Desktop.agreement, .variant(signature: "ay", .bytes(publicKey)))
        let session = try #require(reply.last?.text)
        let other = Data(try #require(reply.first?.bytes))
        let cipher = SessionCipher(sharedSecret: try #require(KeyAgreement.secret(privateKey: privateKey, publicKey: other)))
        let encrypted = try #require(cipher.encrypt(Data("secret".utf8)))
        let secret = client.secret(Array(encrypted.value), session: session, parameters: Array(encrypted.parameters))
        let item = try #require(
            try client.call(Desktop.login, .collection, "CreateItem", client.itemArguments([:], secret), SecretClient.itemSignature).first?
                .text)
        #expect(try client.secret(of: item).text == "secret")
        let parts = try #require(try client.call(item, .item, "GetSecret", [.text(session)], "o").first?.list)
        let (parameters, value) = (Data(try #require(parts[1].bytes)), Data(try #require(parts[2].bytes)))
        #expect(cipher.decrypt(value, parameters: parameters) == Data("secret".utf8))
        // Encrypted for another session.
        let foreign = client.secret(Array(encrypted.value.dropLast()), session: session, parameters: Array(encrypted.parameters))
        #expect(try client.error(item, .item, "SetSecret", [foreign], "(oayays)") == "DBus.Error.InvalidArgs")
        #expect(try client.secret(of: item).text == "secret")
    }

    @Test("A public key that is not permitted opens no session")
    func refusedKeys() throws {
        let client = try Desktop().client()
        for refused in try SessionVectors.load().refused {
            #expect(
                try client.error(
                    Desktop.root, .service, "OpenSession",
                    [.text(Desktop.agreement), .variant(signature: "ay", .bytes(refused.bytes))], "sv") == "DBus.Error.InvalidArgs")
        }
        for input in [
            DBusValue.variant(signature: "s", .text("")), .variant(signature: "as", .list([])), .variant(signature: "b", .number(1)),
        ] {
            #expect(
                try client.error(Desktop.root, .service, "OpenSession", [.text(Desktop.agreement), input], "sv") == "DBus.Error.InvalidArgs"
            )
        }
    }

    @Test("A program that opens sessions in a loop reaches a limit, and others do not")
    func limit() throws {
        let desktop = try Desktop()
        let client = try desktop.client()
        let arguments: [DBusValue] = [.text("plain"), .variant(signature: "s", .text(""))]
        let errors = try (0..<Sessions.limitForConnection).map { _ in
            try client.error(Desktop.root, .service, "OpenSession", arguments, "sv")
        }
        #expect(errors.dropLast().allSatisfy { $0 == nil } && errors.last == "DBus.Error.LimitsExceeded")
        _ = try desktop.client()
        #expect(try client.error(client.session, .session, "Close") == nil)
        #expect(try client.error(Desktop.root, .service, "OpenSession", arguments, "sv") == nil)
    }
}
#endif
