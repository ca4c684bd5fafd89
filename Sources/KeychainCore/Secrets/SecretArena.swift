// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims

/// The allocator of secret memory: pages that are locked in RAM, excluded from core dumps, absent in forked children, and wiped.
///
/// One arena is divided into slots, because mlock counts pages: a page for each 32-byte key would exhaust the usual limit.
/// There are two slot sizes: for a key, and for the payload of an unlocked keychain, which every call loads from the holder.
package enum SecretArena {
    static let slotByteCounts = [64, 512]
    private static let chunkByteCount = 64 * 1024

    private struct State: ~Copyable {
        // Slot addresses as numbers, a list for each size. The mutex guards the lists; an allocated slot belongs to its owner.
        var freeSlots: [[UInt]] = Array(repeating: [], count: SecretArena.slotByteCounts.count)
        var isFullyLocked = true
    }

    private static let state = LockedValue(State())

    /// False once the kernel refused to lock memory.
    ///
    /// Everything works then, but keys may be swapped out.
    package static var isFullyLocked: Bool { state.withLock { $0.isFullyLocked } }

    /// Allocates a zeroed region of at least `byteCount` bytes; nil if memory is exhausted.
    ///
    /// The caller has checked that this process was not forked from one that uses the keychain.
    static func allocate(byteCount: Int) -> UnsafeMutableRawPointer? {
        guard let size = size(for: byteCount) else { return unsafe map(byteCount: byteCount) }
        return unsafe state.withLock { state in
            if state.freeSlots[size].isEmpty {
                var isLocked = false
                guard let base = unsafe keychain_secret_memory_map(chunkByteCount, &isLocked) else { return nil }
                if !isLocked { state.isFullyLocked = false }
                let start = UInt(bitPattern: base)
                state.freeSlots[size] = stride(from: start, to: start + UInt(chunkByteCount), by: slotByteCounts[size]).reversed()
            }
            return unsafe state.freeSlots[size].popLast().flatMap { unsafe UnsafeMutableRawPointer(bitPattern: $0) }
        }
    }

    /// The index of the smallest sufficient slot size; nil if none is sufficient.
    private static func size(for byteCount: Int) -> Int? {
        slotByteCounts.firstIndex { byteCount <= $0 }
    }

    /// Wipes and frees a region that `allocate` returned.
    static func deallocate(_ base: UnsafeMutableRawPointer, byteCount: Int) {
        guard let size = size(for: byteCount) else {
            unsafe keychain_secret_memory_unmap(base, byteCount)
            return
        }
        unsafe keychain_wipe(base, slotByteCounts[size])
        // A forked child allocates nothing.
        guard !ForkDetection.isForkedChild else { return }
        let slot = UInt(bitPattern: base)
        state.withLock { $0.freeSlots[size].append(slot) }
    }

    /// Wipes the unused part of this thread's stack, where functions that have returned left copies of keys.
    package static func wipeStack() {
        keychain_stack_wipe()
    }

    /// Wipes the unused part of this thread's stack to the depth that one call of a cipher uses.
    package static func wipeStackOfCipher() {
        keychain_stack_wipe_near()
    }

    private static func map(byteCount: Int) -> UnsafeMutableRawPointer? {
        var isLocked = false
        guard let base = unsafe keychain_secret_memory_map(byteCount, &isLocked) else { return nil }
        if !isLocked { state.withLock { $0.isFullyLocked = false } }
        return unsafe base
    }
}
