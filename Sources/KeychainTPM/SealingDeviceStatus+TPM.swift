// SPDX-License-Identifier: Apache-2.0
internal import CTPMShims
internal import KeychainCore

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

    /// Four characters from each number, without what is not printable and the blanks around them.
    private static func text(_ numbers: [UInt32]) -> String {
        let bytes = numbers.flatMap { number in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) } }
        let words = bytes.map { (0x21...0x7e).contains($0) ? $0 : 0x20 }.split(separator: 0x20)
        return words.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
    }
}
