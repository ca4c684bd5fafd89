// SPDX-License-Identifier: Apache-2.0

/// A change below the recorded root, or a word of the program that made it.
package enum DiskEvent {
    case mark(String)
    case fileMade(path: String, inode: UInt64)
    case directoryMade(path: String, inode: UInt64)
    case written(inode: UInt64, offset: Int, bytes: [UInt8])
    case truncated(inode: UInt64, byteCount: Int)
    case flushed(inode: UInt64)
    /// The program was told that it failed; what was to be flushed may be on the disk or not, and no later flush brings it there.
    case flushFailed(inode: UInt64)
    case linked(from: String, to: String)
    case renamed(from: String, to: String)
    case removed(path: String)
}
