// SPDX-License-Identifier: Apache-2.0
internal import CTPMShims
internal import KeychainCore

extension SealedObject {
    init(_ object: keychain_tpm_object) {
        // Here and below: the fields are arrays of bytes, which Swift imports as tuples.
        self.init(
            rootKeyName: unsafe withUnsafeBytes(of: object.root_key_name) { unsafe Array($0.prefix(object.root_key_name_byte_count)) },
            publicArea: unsafe withUnsafeBytes(of: object.public_area) { unsafe Array($0.prefix(object.public_area_byte_count)) },
            privateArea: unsafe withUnsafeBytes(of: object.private_area) { unsafe Array($0.prefix(object.private_area_byte_count)) }
        )
    }
}

extension keychain_tpm_object {
    /// Nil if a part is larger than any that a TPM produces.
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

extension SealingAuthorization {
    /// Calls `body` with the bytes, or nil if there are none.
    ///
    /// `body` must not keep or copy them.
    borrowing func withPointer(_ body: (UnsafeRawPointer?) throws(SealingFailure) -> Void) throws(SealingFailure) {
        switch self {
        case .none: try body(nil)
        case .bytes(let bytes):
            guard bytes.byteCount == Int(KEYCHAIN_TPM_AUTHORIZATION_BYTE_COUNT) else {
                throw .failed("an authorization of \(bytes.byteCount) bytes, not \(KEYCHAIN_TPM_AUTHORIZATION_BYTE_COUNT)")
            }
            // The pointer is used only within `body`.
            try unsafe bytes.withBytes { bytes throws(SealingFailure) in try unsafe body(bytes.baseAddress) }
        }
    }

    /// Whether the authorization would be empty for a TPM, which strips trailing zeros.
    var isAllZeros: Bool {
        switch self {
        case .none: false
        // Read here and not kept.
        case .bytes(let bytes): unsafe bytes.withBytes { unsafe $0.allSatisfy { $0 == 0 } }
        }
    }
}

extension SealingDeviceStatus {
    init(_ state: keychain_tpm_state) {
        let vendor = state.vendor_string
        let maker = [[state.manufacturer], [vendor.0, vendor.1, vendor.2, vendor.3]].map(Self.text).filter { !$0.isEmpty }
        let versions = [state.firmware_version.0, state.firmware_version.1].flatMap { [$0 >> 16, $0 & 0xffff] }
        self.init(
            name: "\(maker.joined(separator: " ")), firmware \(versions.map(String.init).joined(separator: "."))",
            failedTryCount: state.lockout_counter, largestFailedTryCount: state.largest_lockout_counter,
            recoverySeconds: state.lockout_interval_seconds, isLockedOut: state.is_locked_out,
            isLockoutAuthorizationSet: state.is_lockout_authorization_set
        )
    }

    /// Returns four characters of each number, without unprintable characters and surrounding blanks.
    private static func text(_ numbers: [UInt32]) -> String {
        let bytes = numbers.flatMap { number in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) } }
        let words = bytes.map { (0x21...0x7e).contains($0) ? $0 : 0x20 }.split(separator: 0x20)
        return words.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
    }
}

extension SealingFailure {
    /// Nil if nothing failed.
    init?(_ report: keychain_tpm_report) {
        // An array of bytes, which Swift imports as a tuple.
        let text = unsafe withUnsafeBytes(of: report.text) { unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        switch report.outcome {
        case KEYCHAIN_TPM_DONE: return nil
        case KEYCHAIN_TPM_UNAVAILABLE: self = .unavailable(text)
        case KEYCHAIN_TPM_WRONG_AUTHORIZATION: self = .wrongAuthorization
        case KEYCHAIN_TPM_LOCKED_OUT: self = .lockedOut(seconds: report.lockout_seconds == 0 ? nil : report.lockout_seconds)
        case KEYCHAIN_TPM_FOREIGN_OBJECT: self = .foreignObject
        case KEYCHAIN_TPM_BUSY: self = .timedOut
        default: self = .failed(text)
        }
    }
}
