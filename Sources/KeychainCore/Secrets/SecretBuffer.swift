// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
package import FoundationEssentials

/// A buffer for bytes on their way to `SecretBytes`, in memory that never moves.
///
/// Removed bytes are wiped.
@safe package struct SecretBuffer: ~Copyable {
    // The region of `capacity` bytes belongs to this buffer until `deinit`; every access stays below `capacity`.
    private let base: UnsafeMutableRawPointer
    package let capacity: Int
    package private(set) var count = 0

    /// Throws `.notAvailable` if there is no memory.
    package init(capacity: Int) throws(KeychainFailure) {
        var isLocked = false
        guard capacity > 0, let base = unsafe keychain_secret_memory_map(capacity, &isLocked) else {
            throw KeychainFailure(.notAvailable, "out of memory for the typed input")
        }
        unsafe self.base = base
        self.capacity = capacity
    }

    deinit {
        unsafe keychain_secret_memory_unmap(base, capacity)
    }

    package subscript(index: Int) -> UInt8 {
        guard index >= 0, index < count else { return 0 }
        return unsafe base.load(fromByteOffset: index, as: UInt8.self)
    }

    /// Appends a byte; returns false if the buffer is full.
    package mutating func append(_ byte: UInt8) -> Bool {
        guard count < capacity else { return false }
        unsafe base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count += 1
        return true
    }

    /// Appends what `body` writes into the free part of the buffer; `body` returns the number of bytes written.
    package mutating func append<Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) {
        let written = try unsafe body(UnsafeMutableRawBufferPointer(start: base + count, count: capacity - count))
        count += min(max(written, 0), capacity - count)
    }

    /// Removes the first bytes and moves the others up.
    package mutating func removeFirst(_ removed: Int) {
        let removed = min(max(removed, 0), count)
        unsafe base.copyMemory(from: base + removed, byteCount: count - removed)
        count -= removed
        unsafe keychain_wipe(base + count, removed)
    }

    package mutating func clear() { removeFirst(count) }

    /// Compares in constant time.
    package func isEqual(to other: borrowing SecretBuffer) -> Bool {
        guard count == other.count else { return false }
        var difference: UInt8 = 0
        for index in 0..<count { difference |= self[index] ^ other[index] }
        return difference == 0
    }

    /// The bytes in memory for keys; nil if there are none.
    package func secret() throws(KeychainFailure) -> SecretBytes? {
        guard count > 0 else { return nil }
        // The region has `count` bytes.
        return try unsafe SecretBytes(copying: UnsafeRawBufferPointer(start: base, count: count))
    }
}

/// Overwrites memory with zeros in a way that the optimizer may not remove.
package func wipeMemory(_ bytes: UnsafeMutableRawBufferPointer) {
    // The pointer and the byte count come from the same buffer.
    if let base = bytes.baseAddress { unsafe keychain_wipe(base, bytes.count) }
}

extension Data {
    /// Copies bytes to the heap, where they can be wiped.
    ///
    /// Those of a short value are otherwise within the `Data`, and within each copy of it, also on the stack.
    package init(onHeap bytes: UnsafeRawBufferPointer) {
        self.init(capacity: Swift.max(bytes.count, 2 * MemoryLayout<Data>.size))
        unsafe append(contentsOf: bytes)
    }

    /// Overwrites the bytes on the heap, which all copies share, in a way that the optimizer may not remove.
    ///
    /// Only for a value that nothing uses any more.
    package func wipeShared() {
        // Swift would make a copy of shared bytes, and overwrite that.
        unsafe withUnsafeBytes { unsafe wipeMemory(UnsafeMutableRawBufferPointer(mutating: $0)) }
    }
}

extension [UInt8] {
    /// Overwrites the bytes in a way that the optimizer may not remove.
    ///
    /// Earlier copies are not reached.
    package mutating func wipe() {
        // The buffer is used within the closure only.
        unsafe withUnsafeMutableBytes { unsafe wipeMemory($0) }
    }
}
