// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Testing

@Suite("Sealing", .enabled(if: TPMDevice.isBuilt))
struct SealingTests {
    @Test(
        "What was sealed is unsealed, by another device object and after a restart of the chip too",
        arguments: [nil, Sample.authorization]
    )
    func roundTrip(authorization: [UInt8]?) throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip, authorization)
        #expect(try Sample.unseal(object, on: chip, authorization) == Sample.secret)
        try chip.kill()
        try chip.start()
        #expect(try Sample.unseal(object, on: chip, authorization) == Sample.secret)
        #expect(try chip.loadedHandles() == [])
    }

    @Test("Secrets of 1 to 64 bytes are sealed, longer ones are refused")
    func lengths() throws {
        let chip = try SoftwareTPM()
        let device = try TPMDevice(tcti: chip.tcti)
        for byteCount in [1, 16, 63, 64] {
            let bytes = [UInt8](repeating: 0, count: byteCount)
            let object = try device.seal(SecretBytes(bytes), authorization: .none)
            #expect(try device.unseal(object, authorization: .none).bytes == bytes)
        }
        #expect(throws: SealingFailure.failed("a TPM seals at most 64 bytes")) {
            try device.seal(SecretBytes(randomByteCount: 65), authorization: .none)
        }
    }

    @Test("An authorization that ends in zeros serves, and one that differs only there from another is the same", arguments: [1, 7, 31])
    func trailingZeros(count: Int) throws {
        let chip = try SoftwareTPM()
        let authorization = [UInt8](repeating: 9, count: 32 - count) + [UInt8](repeating: 0, count: count)
        let object = try Sample.seal(on: chip, authorization)
        #expect(try Sample.unseal(object, on: chip, authorization) == Sample.secret)
        #expect(throws: SealingFailure.wrongAuthorization) { try Sample.unseal(object, on: chip, authorization.reversed()) }
    }

    @Test("An authorization of another length, or of zeros alone, is refused")
    func badAuthorizations() throws {
        let chip = try SoftwareTPM()
        #expect(throws: SealingFailure.failed("to a TPM an authorization of zeros is none")) {
            try Sample.seal(on: chip, [UInt8](repeating: 0, count: 32))
        }
        for byteCount in [1, 31, 33, 64] {
            #expect(throws: SealingFailure.failed("an authorization of \(byteCount) bytes, not 32")) {
                try Sample.seal(on: chip, [UInt8](repeating: 1, count: byteCount))
            }
        }
    }

    @Test("What was sealed without an authorization is not unsealed with one, nor the reverse; the chip is not asked")
    func otherForm() throws {
        let chip = try SoftwareTPM()
        let open = try Sample.seal(on: chip)
        let authorized = try Sample.seal(on: chip, Sample.authorization)
        try chip.kill()
        let failure = SealingFailure.failed("this is not what a TPM sealed that way")
        #expect(throws: failure) { try Sample.unseal(open, on: chip, Sample.authorization) }
        #expect(throws: failure) { try Sample.unseal(authorized, on: chip) }
    }

    @Test("The policy of objects with an authorization is the one that the chip computes, and the one that is published")
    func policyDigest() throws {
        let chip = try SoftwareTPM()
        let published: [UInt8] = [
            0x8f, 0xcd, 0x21, 0x69, 0xab, 0x92, 0x69, 0x4e, 0x0c, 0x63, 0x3f, 0x1a, 0xb7, 0x72, 0x84, 0x2b,
            0x82, 0x41, 0xbb, 0xc2, 0x02, 0x88, 0x98, 0x1f, 0xc7, 0xac, 0x1e, 0xdd, 0xc1, 0xfd, 0xdb, 0x0e,
        ]
        #expect(try TPMDevice(tcti: chip.tcti).computedPolicyDigest() == published)
        #expect(try Array(Sample.seal(on: chip, Sample.authorization).publicArea[12..<44]) == published)
        #expect(try chip.loadedHandles() == [])
    }

    @Test("Neither the secret nor the authorization passes in clear between the program and the chip")
    func traffic() throws {
        let chip = try SoftwareTPM(recordsTraffic: true)
        for authorization in [nil, Sample.authorization] {
            let object = try Sample.seal(on: chip, authorization)
            #expect(try Sample.unseal(object, on: chip, authorization) == Sample.secret)
            // What does pass in clear is seen.
            #expect(try chip.hasSeen(object.publicArea))
        }
        #expect(try !chip.hasSeen(Sample.secret.prefix(8)))
        #expect(try !chip.hasSeen(Sample.authorization.prefix(8)))
    }
}
