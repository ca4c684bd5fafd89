// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation
import KeychainCore
import KeychainTesting
import Testing

@testable import Keybag

@Suite("The row cipher")
struct RowCipherTests {
    @Test("It keeps the contract of an item cipher")
    func contract() throws {
        let violations = try ItemCipherContract.violations(of: SampleStore().keybag.cipher, beside: SampleStore().keybag.cipher)
        #expect(violations == [])
    }

    @Test("A value of 10 MiB survives")
    func largeValue() throws {
        let store = try SampleStore()
        let secret = Data((0..<(10 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let opened = try store.open(store.seal(secret))
        #expect(opened.secret == secret)
    }

    @Test("Equally long parts hide how long their contents are", arguments: [0..<56, 56..<120, 4_024..<4_088])
    func sizesAreHidden(_ byteCounts: Range<Int>) throws {
        let store = try SampleStore()
        let sizes = Set(try byteCounts.map { try store.seal(Data(count: $0)).sealedSecret.count })
        #expect(sizes.count == 1)
    }

    @Test("Padding adds at most an eighth to contents of 1 KiB and more")
    func paddingOverhead() {
        for byteCount in stride(from: 1_024, through: 1 << 20, by: 97) {
            #expect(PartPadding.paddedByteCount(contentByteCount: byteCount) * 100 <= byteCount * 112)
        }
    }

    @Test("A row cannot be sealed under a key that its header does not name")
    func foreignClassKey() throws {
        let store = try SampleStore()
        var header = store.header()
        header.classKeyGeneration = 2
        let failure = #expect(throws: KeychainFailure.self) {
            try store.keybag.withClassKey(for: .whenUnlocked, generation: 1) { (key: borrowing ClassKey) throws(KeychainFailure) in
                try store.keybag.cipher.seal(SampleStore.attributes, secret: nil, header: header, under: key)
            }
        }
        #expect(failure?.status == .internal)
    }

    @Test("A header that claims constraints gets those that were sealed, and no others")
    func claimedConstraints() throws {
        let store = try SampleStore()
        var header = store.header()
        header.constraints = [1]
        #expect(try store.seal(nil, header: header).header.constraints == nil)
    }

    @Test("A fingerprint is the SHA-1 of attributes, presence and secret")
    func fingerprint() throws {
        let cipher = try SampleStore().keybag.cipher
        let encoded = Data(SampleStore.attributes.encoded)
        let withSecret = Insecure.SHA1.hash(data: encoded + [1] + Data("12345".utf8))
        let without = Insecure.SHA1.hash(data: encoded + [0])
        #expect(cipher.fingerprint(of: SampleStore.attributes, secret: Data("12345".utf8)) == Data(withSecret))
        #expect(cipher.fingerprint(of: SampleStore.attributes, secret: nil) == Data(without))
    }

    @Test("More values than fit one digest are refused")
    func tooManyValues() throws {
        let cipher = try SampleStore().keybag.cipher
        let values = Array(repeating: (Attribute.account, AttributeValue.string("a")), count: 256)
        #expect(throws: KeychainFailure(.parameter, "")) { try cipher.digest(of: values, in: .genericPassword) }
    }

    @Test("Prepared keys give the codes that HMAC gives", arguments: [1, 32, 63, 64])
    func preparedKey(_ keyByteCount: Int) throws {
        let secret = try SecretBytes(randomByteCount: keyByteCount)
        let key = try HMACKey(secret)
        for messageByteCount in [0, 1, 55, 56, 63, 64, 65, 1_000] {
            let message = (0..<messageByteCount).map { UInt8(truncatingIfNeeded: $0) }
            let expected = HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(secret))
            let code = key.authenticationCode { $0.update(data: message) }
            #expect(Array(code) == Array(expected))
        }
    }

    @Test("A key longer than a block is refused")
    func longKey() throws {
        let secret = try SecretBytes(randomByteCount: 65)
        #expect(throws: KeychainFailure(.internal, "")) { _ = try HMACKey(secret) }
    }
}
