// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Testing

@Suite("Protection against guessing", .enabled(if: TPMDevice.isBuilt))
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
