// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Synchronization

/// The process's memory for keys: mapped pages that are locked, left out of core dumps, absent after fork, and wiped.
///
/// One arena, cut into slots, because mlock counts pages: a page for each 32-byte key would exhaust the usual limit.
/// Slots of two sizes: for a key, and for the few keys of an unlocked keychain, which every call asks the holder for.
package enum SecretArena {
    static let slotByteCounts = [64, 512]
    private static let chunkByteCount = 64 * 1024

    private struct State: ~Copyable {
        // Slot addresses as numbers, a list for each size: the mutex guards them, and a slot belongs to whoever took it.
        var freeSlots: [[UInt]] = Array(repeating: [], count: SecretArena.slotByteCounts.count)
        var isFullyLocked = true
    }

    private static let state = Mutex(State())

    /// False once the kernel refused to lock memory for keys: everything works, but keys may reach swap.
    package static var isFullyLocked: Bool { state.withLock { $0.isFullyLocked } }

    /// A zeroed region of at least `byteCount` bytes; nil when the system has no memory.
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

    /// The index of the smallest slots that are large enough; nil when none are.
    private static func size(for byteCount: Int) -> Int? {
        slotByteCounts.firstIndex { byteCount <= $0 }
    }

    /// Wipes a region that `take` gave and takes it back.
    static func deallocate(_ base: UnsafeMutableRawPointer, byteCount: Int) {
        guard let size = size(for: byteCount) else {
            unsafe keychain_secret_memory_unmap(base, byteCount)
            return
        }
        unsafe keychain_wipe(base, slotByteCounts[size])
        let slot = UInt(bitPattern: base)
        state.withLock { $0.freeSlots[size].append(slot) }
    }

    /// Wipes what functions that have returned left on this thread's stack: copies of keys that no owner knows of.
    package static func wipeStack() {
        keychain_stack_wipe()
    }

    /// The same, as far as one call of a cipher reaches.
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
