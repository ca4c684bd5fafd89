// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTPM
import Testing

@Suite("A build without the trait TPM", .enabled(if: !TPMDevice.isBuilt))
struct WithoutTraitTests {
    @Test("It says that it cannot talk to a TPM")
    func saysSo() throws {
        let device = try TPMDevice()
        #expect(throws: SealingFailure.unavailable("not built with TPM")) { try device.rootKeyName() }
        #expect(throws: SealingFailure.unavailable("not built with TPM")) { try device.status() }
        let secret = try SecretBytes(randomByteCount: 32)
        #expect(throws: SealingFailure.unavailable("not built with TPM")) { try device.seal(secret, authorization: .none) }
    }
}
