// SPDX-License-Identifier: Apache-2.0

/// Follows which files were given checksums, in writes of sixteen bytes, that were not flushed yet.
struct ChecksumOrder {
    private static let checksumByteCount = 16

    private var pending: Set<UInt64> = []

    func hasPending(_ inode: UInt64) -> Bool { pending.contains(inode) }

    /// Whether a file is written otherwise while its checksums may still be lost.
    mutating func isBroken(by event: DiskEvent) -> Bool {
        switch event {
        case .written(let inode, _, let bytes) where bytes.count == Self.checksumByteCount: pending.insert(inode)
        case .written(let inode, _, _): return pending.contains(inode)
        case .flushed(let inode): pending.remove(inode)
        default: break
        }
        return false
    }
}
