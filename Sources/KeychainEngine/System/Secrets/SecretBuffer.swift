// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
package import KeychainCore

/// Bytes on their way from a descriptor to `SecretBytes`, in memory that never moves and is wiped with whatever leaves it.
@safe package struct SecretBuffer: ~Copyable {
    // The region of `capacity` bytes belongs to this buffer until `deinit`; every access stays below `capacity`.
    private let base: UnsafeMutableRawPointer
    package let capacity: Int
    package private(set) var count = 0

    package init(capacity: Int) throws(PresenceRefusal) {
        var isLocked = false
        guard capacity > 0, let base = unsafe keychain_secret_memory_map(capacity, &isLocked) else {
            throw .failed("there is no memory for what is typed")
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

    /// False: it is full.
    package mutating func append(_ byte: UInt8) -> Bool {
        guard count < capacity else { return false }
        unsafe base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count += 1
        return true
    }

    /// Takes the first bytes out; what follows moves up.
    package mutating func removeFirst(_ removed: Int) {
        let removed = min(max(removed, 0), count)
        unsafe memmove(base, base + removed, count - removed)
        count -= removed
        unsafe keychain_wipe(base + count, removed)
    }

    package mutating func clear() { removeFirst(count) }

    /// Reads what there is and fits; the result and errno are those of read(2).
    mutating func read(from descriptor: Int32) -> Int {
        let result = unsafe Glibc.read(descriptor, base + count, capacity - count)
        if result > 0 { count += result }
        return result
    }

    package func isEqual(to other: borrowing SecretBuffer) -> Bool {
        guard count == other.count else { return false }
        var difference: UInt8 = 0
        for index in 0..<count { difference |= self[index] ^ other[index] }
        return difference == 0
    }

    /// What has been gathered, in memory for keys.
    package func answer() throws(PresenceRefusal) -> PresenceAnswer {
        guard count > 0 else { return .empty }
        do throws(KeychainFailure) {
            let secret = try unsafe SecretBytes(copying: UnsafeRawBufferPointer(start: base, count: count))
            return .secret(secret)
        } catch {
            throw .failed(error.reason)
        }
    }
}

extension [UInt8] {
    /// Overwrites the bytes so that the optimiser may not leave it out.
    ///
    /// Copies made before are not reached.
    package mutating func wipe() {
        // The buffer is used within the closure only.
        unsafe withUnsafeMutableBytes { buffer in
            if let base = buffer.baseAddress { unsafe keychain_wipe(base, buffer.count) }
        }
    }
}
