// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTPM
import KeychainTestSupport

extension ChildCommand {
    /// TCTI: seals and unseals, fails in many ways, and says so when no descriptor has been left open.
    static func sealAndFail(_ arguments: [String]) throws {
        guard let tcti = arguments.first else { throw BadArguments() }
        let device = try TPMDevice(tcti: tcti)
        // What opens once for the process is open after the first round.
        try useAndFail(device)
        let before = try openDescriptorCount()
        for _ in 0..<20 { try useAndFail(device) }
        guard try openDescriptorCount() == before else { throw BadArguments() }
        say("sealed and failed")
    }

    private static func useAndFail(_ device: TPMDevice) throws {
        let secret = try SecretBytes(randomByteCount: 32)
        let guarded = try device.seal(secret, authorization: .bytes(SecretBytes(randomByteCount: 32)))
        let open = try device.seal(secret, authorization: .none)
        _ = try device.unseal(open, authorization: .none)
        let damaged = SealedObject(
            rootKeyName: open.rootKeyName, publicArea: open.publicArea,
            privateArea: open.privateArea.dropLast() + [open.privateArea[open.privateArea.count - 1] ^ 1])
        let failures = [
            Result { _ = try device.unseal(guarded, authorization: .bytes(SecretBytes(randomByteCount: 32))) },
            Result { _ = try device.unseal(damaged, authorization: .none) },
            Result { _ = try TPMDevice(tcti: "swtpm:path=/nonexistent").status() },
            Result { _ = try TPMDevice(tcti: "nosuchmodule").status() },
        ]
        for case .success in failures { throw BadArguments() }
    }
}
