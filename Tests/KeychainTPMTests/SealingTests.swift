// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Testing

/// A secret with its authorization, and short functions that seal and unseal it.
enum Sample {
    static let secret = [UInt8](1...32)
    static let authorization = [UInt8](101...132)
    static let wrongAuthorization = [UInt8](201...232)

    /// Nil: no authorization.
    static func seal(on chip: SoftwareTPM, _ authorization: [UInt8]? = nil) throws -> SealedObject {
        let device = try TPMDevice(tcti: chip.tcti)
        guard let authorization else { return try device.seal(SecretBytes(secret), authorization: .none) }
        return try device.seal(SecretBytes(secret), authorization: .bytes(SecretBytes(authorization)))
    }

    static func unseal(
        _ object: SealedObject, on chip: SoftwareTPM, _ authorization: [UInt8]? = nil, timeoutSeconds: UInt32 = 30
    ) throws -> [UInt8] {
        try unseal(object, tcti: chip.tcti, authorization, timeoutSeconds: timeoutSeconds)
    }

    static func unseal(
        _ object: SealedObject, tcti: String, _ authorization: [UInt8]? = nil, timeoutSeconds: UInt32 = 30
    ) throws -> [UInt8] {
        let device = try TPMDevice(tcti: tcti, timeoutSeconds: timeoutSeconds)
        guard let authorization else { return try device.unseal(object, authorization: .none).bytes }
        return try device.unseal(object, authorization: .bytes(SecretBytes(authorization))).bytes
    }
}

extension SecretBytes {
    init(_ bytes: [UInt8]) throws(KeychainFailure) {
        // The region is as long as the array.
        try unsafe self.init(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
    }

    // Copied within the closure.
    var bytes: [UInt8] { unsafe withBytes { unsafe Array($0) } }
}

@Suite("Sealing", .requiresTPM)
struct SealingTests {
    @Test(
        "A sealed secret is unsealed, also by another TPMDevice and after a restart of the TPM",
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

    @Test("Secrets of 1 to 64 bytes are sealed, and longer ones are refused")
    func lengths() throws {
        let chip = try SoftwareTPM()
        let device = try TPMDevice(tcti: chip.tcti)
        for byteCount in [1, 16, 63, 64] {
            let bytes = [UInt8](repeating: 0, count: byteCount)
            let object = try device.seal(SecretBytes(bytes), authorization: .none)
            #expect(try device.unseal(object, authorization: .none).bytes == bytes)
        }
        expectFailed {
            try device.seal(SecretBytes(randomByteCount: 65), authorization: .none)
        }
    }

    @Test("An authorization may end in zeros, and trailing zeros do not matter", arguments: [1, 7, 31])
    func trailingZeros(count: Int) throws {
        let chip = try SoftwareTPM()
        let authorization = [UInt8](repeating: 9, count: 32 - count) + [UInt8](repeating: 0, count: count)
        let object = try Sample.seal(on: chip, authorization)
        #expect(try Sample.unseal(object, on: chip, authorization) == Sample.secret)
        #expect(throws: SealingFailure.wrongAuthorization) { try Sample.unseal(object, on: chip, authorization.reversed()) }
    }

    @Test("An authorization of another size or of zeros alone is refused")
    func badAuthorizations() throws {
        let chip = try SoftwareTPM()
        expectFailed {
            try Sample.seal(on: chip, [UInt8](repeating: 0, count: 32))
        }
        for byteCount in [1, 31, 33, 64] {
            expectFailed {
                try Sample.seal(on: chip, [UInt8](repeating: 1, count: byteCount))
            }
        }
    }

    @Test("An object sealed without an authorization is refused with one, and vice versa, without asking the TPM")
    func otherForm() throws {
        let chip = try SoftwareTPM()
        let open = try Sample.seal(on: chip)
        let authorized = try Sample.seal(on: chip, Sample.authorization)
        try chip.kill()
        expectFailed { try Sample.unseal(open, on: chip, Sample.authorization) }
        expectFailed { try Sample.unseal(authorized, on: chip) }
    }

    @Test("The policy digest is the one that the TPM computes, and the published one")
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

    @Test("Neither the secret nor the authorization is sent to the TPM in plaintext")
    func traffic() throws {
        let chip = try SoftwareTPM(recordsTraffic: true)
        for authorization in [nil, Sample.authorization] {
            let object = try Sample.seal(on: chip, authorization)
            #expect(try Sample.unseal(object, on: chip, authorization) == Sample.secret)
            // Verifies the recording: plaintext data is found in it.
            #expect(try chip.hasSeen(object.publicArea))
        }
        #expect(try !chip.hasSeen(Sample.secret.prefix(8)))
        #expect(try !chip.hasSeen(Sample.authorization.prefix(8)))
    }
}

@Suite("Protection against guessing", .requiresTPM)
struct AuthorizationTests {
    @Test("A wrong authorization is counted, and a correct one does not reset the count")
    func counting() throws {
        let chip = try SoftwareTPM()
        let device = try TPMDevice(tcti: chip.tcti)
        let object = try Sample.seal(on: chip, Sample.authorization)
        #expect(try device.status().failedTryCount == 0)
        #expect(throws: SealingFailure.wrongAuthorization) { try Sample.unseal(object, on: chip, Sample.wrongAuthorization) }
        #expect(try device.status().failedTryCount == 1)
        #expect(try Sample.unseal(object, on: chip, Sample.authorization) == Sample.secret)
        #expect(try device.status().failedTryCount == 1)
        #expect(try chip.loadedHandles() == [])
    }

    @Test("Too many wrong authorizations lock authorized objects, and only those, until the lockout ends")
    func lockout() throws {
        let chip = try SoftwareTPM()
        try chip.setLockout(afterTries: 2, recoverySeconds: 3)
        let device = try TPMDevice(tcti: chip.tcti)
        let open = try Sample.seal(on: chip)
        let guarded = try Sample.seal(on: chip, Sample.authorization)
        for _ in 0..<2 {
            #expect(throws: SealingFailure.wrongAuthorization) { try Sample.unseal(guarded, on: chip, Sample.wrongAuthorization) }
        }
        #expect(throws: SealingFailure.lockedOut(seconds: 3)) { try Sample.unseal(guarded, on: chip, Sample.authorization) }
        #expect(throws: SealingFailure.lockedOut(seconds: 3)) { try Sample.unseal(guarded, on: chip, Sample.wrongAuthorization) }
        let status = try device.status()
        #expect(status.isLockedOut)
        #expect(status.largestFailedTryCount == 2)
        #expect(status.recoverySeconds == 3)
        #expect(try Sample.unseal(open, on: chip) == Sample.secret)

        #expect(try waitUntil { try !device.status().isLockedOut })
        #expect(try Sample.unseal(guarded, on: chip, Sample.authorization) == Sample.secret)
        #expect(try chip.loadedHandles() == [])
    }

    @Test("The status names the TPM, and whether resetting the count requires an authorization")
    func status() throws {
        let chip = try SoftwareTPM()
        let device = try TPMDevice(tcti: chip.tcti)
        let before = try device.status()
        #expect(before.name.hasPrefix("IBM SW TPM, firmware "))
        #expect(!before.isLockedOut)
        #expect(!before.isLockoutAuthorizationSet)
        try chip.run("tpm2_changeauth", "-c", "lockout", "a password")
        #expect(try device.status().isLockoutAuthorizationSet)
    }

    @Test("Reading the status does not create a storage root key")
    func statusChangesNothing() throws {
        let chip = try SoftwareTPM()
        _ = try TPMDevice(tcti: chip.tcti).status()
        #expect(try chip.run("tpm2_getcap", "handles-persistent") == "")
    }
}

@Suite("Memory after sealing", .requiresTPM)
struct ResidueTests {
    /// Secrets used in no other test, because the search would find those too.
    private static let secret = needle(0x1d)
    private static let authorization = needle(0x6b)

    private static func needle(_ start: UInt8) -> OwnMemory.Needle {
        OwnMemory.Needle(masked: (0..<32).map { start &+ UInt8($0) &* 37 })
    }

    @Test("After use, neither a secret nor its authorization is in memory, though tpm2-tss does not wipe")
    func nothingIsLeft() throws {
        let chip = try SoftwareTPM()
        let device = try TPMDevice(tcti: chip.tcti)
        do {
            let authorization = SealingAuthorization.bytes(try Self.authorization.secret())
            let guarded = try device.seal(Self.secret.secret(), authorization: authorization)
            let open = try device.seal(Self.secret.secret(), authorization: .none)
            for _ in 0..<3 {
                _ = try device.unseal(guarded, authorization: authorization)
                _ = try device.unseal(open, authorization: .none)
            }
            let secret = try device.unseal(guarded, authorization: authorization)
            #expect(try OwnMemory.holds(Self.secret))
            #expect(try OwnMemory.holds(Self.authorization))
            #expect(secret.byteCount == 32)
        }
        #expect(try !OwnMemory.holds(Self.secret))
        #expect(try !OwnMemory.holds(Self.authorization))
    }
}
