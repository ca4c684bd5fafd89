// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
package import Glibc

/// One line as it is typed, with the editing that the kernel does in canonical mode: erase, kill, end of file.
package struct TypedLine {
    package enum End {
        case complete, cancelled, tooLong
        /// The terminal hung up.
        case gone
    }

    package private(set) var bytes: [UInt8] = []
    package private(set) var end: End?

    private let erase: UInt8
    private let kill: UInt8
    private let endOfFile: UInt8
    private let interrupt: UInt8
    private let limit: Int

    package init(mode: termios, limit: Int) {
        var characters = mode.c_cc
        // The buffer is used within the closure only.
        (erase, kill, endOfFile, interrupt) = unsafe withUnsafeBytes(of: &characters) {
            unsafe ($0[Int(VERASE)], $0[Int(VKILL)], $0[Int(VEOF)], $0[Int(VINTR)])
        }
        self.limit = limit
        // Never moved while it grows, so that no copy is left behind.
        bytes.reserveCapacity(limit)
    }

    /// Takes what can be read now.
    package mutating func take(from descriptor: Int32) {
        var chunk = [UInt8](repeating: 0, count: 4096)
        defer { chunk.wipe() }
        let count = unsafe read(descriptor, &chunk, chunk.count)
        guard count > 0 else {
            if count == 0 || (errno != EINTR && errno != EAGAIN) { end = .gone }
            return
        }
        for byte in chunk[..<count] where end == nil { take(byte) }
    }

    package mutating func take(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
            end = .complete
        // Comes only where the terminal makes no signal of it; zero: there is no such character.
        case interrupt where interrupt != 0:
            end = .cancelled
        case endOfFile:
            end = bytes.isEmpty ? .cancelled : .complete
        case erase, 0x08:
            // A whole character, not a byte of one.
            while let last = takeBack(), last & 0xC0 == 0x80 {}
        case kill:
            clear()
        default:
            if bytes.count < limit { bytes.append(byte) } else { end = .tooLong }
        }
    }

    /// Removes the last byte, from memory too.
    private mutating func takeBack() -> UInt8? {
        guard let last = bytes.last else { return nil }
        // The last of the bytes, of which there is one.
        unsafe bytes.withUnsafeMutableBytes { buffer in
            if let base = buffer.baseAddress { unsafe keychain_wipe(base + (buffer.count - 1), 1) }
        }
        bytes.removeLast()
        return last
    }

    /// Forgets everything: the next byte begins a line.
    package mutating func begin() {
        clear()
        end = nil
    }

    package mutating func clear() {
        bytes.wipe()
        bytes.removeAll(keepingCapacity: true)
    }
}
