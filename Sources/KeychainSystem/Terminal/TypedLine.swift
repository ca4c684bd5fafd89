// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import KeychainCore

/// A line that is being typed, with the editing of the kernel's canonical mode: erase, kill, end of file.
package struct TypedLine {
    package enum End: Sendable {
        case complete, canceled, tooLong
        /// The terminal hung up.
        case hungUp
    }

    package private(set) var bytes: [UInt8] = []
    package private(set) var end: End?

    private let erase: UInt8
    private let kill: UInt8
    private let endOfFile: UInt8
    private let interrupt: UInt8
    private let limit: Int

    /// The first four are the characters of termios(3) that erase a character, erase the line, end it, and cancel it; 0 for none.
    package init(erase: UInt8, kill: UInt8, endOfFile: UInt8, interrupt: UInt8, limit: Int) {
        self.erase = erase
        self.kill = kill
        self.endOfFile = endOfFile
        self.interrupt = interrupt
        self.limit = limit
        // The array never moves while it grows, so no copy is left behind.
        bytes.reserveCapacity(limit)
    }

    /// Uses the characters of a terminal's mode.
    init(mode: termios, limit: Int) {
        var characters = mode.c_cc
        // The buffer is used within the closure only.
        let (erase, kill, endOfFile, interrupt) = unsafe withUnsafeBytes(of: &characters) {
            unsafe ($0[Int(VERASE)], $0[Int(VKILL)], $0[Int(VEOF)], $0[Int(VINTR)])
        }
        self.init(erase: erase, kill: kill, endOfFile: endOfFile, interrupt: interrupt, limit: limit)
    }

    /// Appends the bytes that can be read now.
    mutating func append(from descriptor: FileDescriptor) {
        var chunk = [UInt8](repeating: 0, count: 4096)
        defer { chunk.wipe() }
        // The buffer is used within the closure only.
        let read: Result<Int, Errno> = unsafe chunk.withUnsafeMutableBytes { buffer in
            Result { () throws(Errno) in try unsafe descriptor.read(into: buffer) }
        }
        switch read {
        case .success(0): end = .hungUp
        case .success(let count): for byte in chunk[..<count] where end == nil { append(byte) }
        case .failure(.wouldBlock): break
        case .failure: end = .hungUp
        }
    }

    /// Appends a byte, or performs the edit that the byte stands for.
    package mutating func append(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
            end = .complete
        // Arrives only if the terminal does not turn it into a signal.
        case interrupt where interrupt != 0:
            end = .canceled
        case endOfFile:
            end = bytes.isEmpty ? .canceled : .complete
        case erase, 0x08:
            // The whole character, not one byte of it.
            while let last = removeLast(), last & 0xC0 == 0x80 {}
        case kill:
            clear()
        default:
            if bytes.count < limit { bytes.append(byte) } else { end = .tooLong }
        }
    }

    /// Removes the last byte, from memory too.
    private mutating func removeLast() -> UInt8? {
        guard let last = bytes.last else { return nil }
        // The last of the bytes, of which there is one.
        unsafe bytes.withUnsafeMutableBytes { unsafe wipeMemory(UnsafeMutableRawBufferPointer(rebasing: $0.suffix(1))) }
        bytes.removeLast()
        return last
    }

    /// Removes and wipes the bytes.
    package mutating func clear() {
        bytes.wipe()
        bytes.removeAll(keepingCapacity: true)
    }
}
