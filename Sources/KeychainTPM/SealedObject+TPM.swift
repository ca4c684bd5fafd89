// SPDX-License-Identifier: Apache-2.0
internal import CTPMShims
internal import KeychainCore

extension SealedObject {
    init(_ object: keychain_tpm_object) {
        // Here and below: the fields are arrays of bytes, which Swift sees as tuples.
        self.init(
            rootKeyName: unsafe withUnsafeBytes(of: object.root_key_name) { unsafe Array($0.prefix(object.root_key_name_byte_count)) },
            publicArea: unsafe withUnsafeBytes(of: object.public_area) { unsafe Array($0.prefix(object.public_area_byte_count)) },
            privateArea: unsafe withUnsafeBytes(of: object.private_area) { unsafe Array($0.prefix(object.private_area_byte_count)) }
        )
    }
}

extension keychain_tpm_object {
    /// Nil when a part is larger than any that a chip gives.
    init?(_ object: SealedObject) {
        self.init()
        guard
            object.rootKeyName.count <= Int(KEYCHAIN_TPM_LARGEST_NAME),
            object.publicArea.count <= Int(KEYCHAIN_TPM_LARGEST_PUBLIC_AREA),
            object.privateArea.count <= Int(KEYCHAIN_TPM_LARGEST_PRIVATE_AREA)
        else { return nil }
        root_key_name_byte_count = object.rootKeyName.count
        public_area_byte_count = object.publicArea.count
        private_area_byte_count = object.privateArea.count
        unsafe withUnsafeMutableBytes(of: &root_key_name) { unsafe $0.copyBytes(from: object.rootKeyName) }
        unsafe withUnsafeMutableBytes(of: &public_area) { unsafe $0.copyBytes(from: object.publicArea) }
        unsafe withUnsafeMutableBytes(of: &private_area) { unsafe $0.copyBytes(from: object.privateArea) }
    }
}
