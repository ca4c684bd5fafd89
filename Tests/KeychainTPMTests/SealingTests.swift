// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Testing

/// A secret, what guards it, and the shortest way to seal and unseal it.
enum Sample {
    static let secret = [UInt8](1...32)
    static let authorization = [UInt8](101...132)
    static let wrongAuthorization = [UInt8](201...232)

    /// Nil stands for no authorization.
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

    // Copied while they are lent.
    var bytes: [UInt8] { unsafe withBytes { unsafe Array($0) } }
}

@Suite("Sealing", .requiresTPM)
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

@Suite("Protection against guessing", .requiresTPM)
struct AuthorizationTests {
    @Test("A wrong authorization is counted, and a right one does not make the chip forget it")
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

    @Test("Too many wrong ones lock the chip, for what has an authorization alone, until the time is over")
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

        let deadline = ContinuousClock.now.advanced(by: .seconds(60))
        while try device.status().isLockedOut, ContinuousClock.now < deadline { usleep(100_000) }
        #expect(try Sample.unseal(guarded, on: chip, Sample.authorization) == Sample.secret)
        #expect(try chip.loadedHandles() == [])
    }

    @Test("The status names the chip, and tells whether anybody may reset its count")
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

    @Test("A status is given without making a storage root key")
    func statusChangesNothing() throws {
        let chip = try SoftwareTPM()
        _ = try TPMDevice(tcti: chip.tcti).status()
        #expect(try chip.run("tpm2_getcap", "handles-persistent") == "")
    }
}

@Suite("What sealing leaves in memory", .requiresTPM)
struct ResidueTests {
    /// These, and in no other test: its search would find theirs.
    private static let secret = needle(0x1d)
    private static let authorization = needle(0x6b)

    private static func needle(_ start: UInt8) -> OwnMemory.Needle {
        OwnMemory.Needle(masked: (0..<32).map { start &+ UInt8($0) &* 37 })
    }

    @Test("Once a secret and its authorization are gone, neither is found, though tpm2-tss wipes nothing that it frees")
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
