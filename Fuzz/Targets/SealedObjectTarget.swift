// SPDX-License-Identifier: Apache-2.0
internal import CTPMShims
internal import Keybag
internal import KeychainCore

@testable internal import KeychainTPM

/// What a TPM sealed, as a keybag keeps it: read before anything can authenticate it.
struct SealedObjectTarget: FuzzTarget {
    static let name = "sealed-object"

    static let example = SealedObject(rootKeyName: [0, 11, 1, 2, 3], publicArea: [0, 3, 4, 5, 6], privateArea: [0, 2, 7, 8])

    static func seeds() -> [[UInt8]] {
        let large = SealedObject(
            rootKeyName: Array(repeating: 1, count: 34), publicArea: [0, 78] + Array(repeating: 2, count: 78),
            privateArea: [0, 160] + Array(repeating: 3, count: 160))
        return [example.encoded, large.encoded]
    }

    func run(_ input: [UInt8]) {
        guard let object = try? SealedObject(encoded: input) else { return }
        expect(object.encoded == input, "a sealed object is accepted in a form that is never written")
        let record = KeybagDocument.ProtectorRecord(sealedDeviceSecret: object)
        expect((try? record.sealedDeviceSecret()) == object, "a protector's record says something else")
        expect(keychain_tpm_object(object) != nil, "an object that is accepted has no form for the chip's library")
    }
}
