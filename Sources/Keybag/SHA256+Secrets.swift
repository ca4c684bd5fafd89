// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials

extension SHA256 {
    /// The digest of what was fed; of a secret's bytes none stays behind.
    ///
    /// A hash keeps the end of what it was fed until a block is full, and swift-crypto frees that block without wiping it. One more
    /// block is fed to a hash that has done its work, and takes the place of what was there.
    mutating func finalizeWiping() -> Digest {
        let digest = finalize()
        update(data: Self.zeroBlock)
        return digest
    }

    private static let zeroBlock = [UInt8](repeating: 0, count: blockByteCount)
}
