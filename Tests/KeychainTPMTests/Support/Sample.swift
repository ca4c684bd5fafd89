// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTPM
import KeychainTestSupport

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
