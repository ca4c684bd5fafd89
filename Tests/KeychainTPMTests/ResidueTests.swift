// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Testing

@Suite("What sealing leaves in memory", .enabled(if: TPMDevice.isBuilt))
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
