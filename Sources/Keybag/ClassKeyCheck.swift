// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Tells whether bytes are a certain class key of a certain store, without any other key and without telling the key.
enum ClassKeyCheck {
    static let byteCount = 16

    static func value(of secret: borrowing SecretBytes, _ id: ClassKeyID, storeID: StoreID) throws(KeychainFailure) -> [UInt8] {
        var context = [id.accessibility.code]
        context.append(littleEndian: id.generation)
        return try KeyPurpose.classKeyCheck.deriveBytes(from: secret, storeID: storeID, context: context, byteCount: byteCount)
    }
}
