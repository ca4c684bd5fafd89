// SPDX-License-Identifier: Apache-2.0
import KeychainCore

extension SealingDevice {
    /// The storage root key's name, of a chip that is ours to change.
    func rootKeyName() throws(SealingFailure) -> [UInt8] { try rootKeyName(makingOne: true) }
}
