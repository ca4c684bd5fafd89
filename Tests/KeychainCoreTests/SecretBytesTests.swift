// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization
import Testing

@testable import KeychainCore

@Suite("Secret memory")
struct SecretBytesTests {
    /// A copy of the bytes for comparisons.
    private func copy(_ secret: borrowing SecretBytes) -> [UInt8] {
        // The bytes are copied within the closure.
        unsafe secret.withBytes { unsafe Array($0) }
    }

    private func address(_ secret: borrowing SecretBytes) -> UInt {
        // Only the number leaves the closure.
        unsafe secret.withBytes { UInt(bitPattern: $0.baseAddress) }
    }

    private func secret(_ bytes: [UInt8]) throws -> SecretBytes {
        // The bytes are copied within the closure, into a region of their size.
        try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
    }

    @Test("A secret has the bytes that it was filled with", arguments: [1, 32, 63, 64, 65, 4_096, 100_000])
    func contents(_ byteCount: Int) throws {
        let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) }
        let secret = try secret(bytes)
        #expect(secret.byteCount == byteCount)
        #expect(copy(secret) == bytes)
    }

    @Test("A reused region is zeroed before it is initialized", arguments: [32, 1_000])
    func zeroedAtFirst(_ byteCount: Int) throws {
        for _ in 0..<200 {
            var wasZero = false
            // The buffer is read and written within the closure.
            let used = try unsafe SecretBytes(byteCount: byteCount) { buffer in
                wasZero = unsafe buffer.allSatisfy { $0 == 0 }
                for index in buffer.indices { unsafe buffer[index] = 0xAA }
            }
            #expect(wasZero && used.byteCount == byteCount)
        }
    }

    @Test("Random secrets differ")
    func randomSecrets() throws {
        let one = try SecretBytes(randomByteCount: 32)
        let two = try SecretBytes(randomByteCount: 32)
        #expect(copy(one) != copy(two))
        #expect(Set(copy(one)).count > 1)
    }

    @Test("Secrets that live at the same time do not overlap")
    func noOverlap() throws {
        let first = try secret(Array(repeating: 1, count: 64))
        let second = try secret(Array(repeating: 2, count: 64))
        let third = try secret(Array(repeating: 3, count: 64))
        #expect(copy(first) == Array(repeating: 1, count: 64))
        #expect(copy(second) == Array(repeating: 2, count: 64))
        #expect(copy(third) == Array(repeating: 3, count: 64))
    }

    @Test("A secret without bytes is refused", arguments: [0, -1])
    func emptySecret(_ byteCount: Int) {
        #expect(throws: KeychainFailure(.allocate, "")) { _ = try SecretBytes(randomByteCount: byteCount) }
    }

    @Test("An error of the initializing closure is rethrown")
    func fillingFails() {
        #expect(throws: KeychainFailure(.decode, "")) {
            _ = try unsafe SecretBytes(byteCount: 32) { _ throws(KeychainFailure) in throw KeychainFailure(.decode, "of the caller") }
        }
    }

    @Test("A secret is wiped at the end of its lifetime")
    func wiped() throws {
        let bytes = (0..<32).map { _ in UInt8.random(in: 1...255) }
        func use() throws -> UInt {
            let used = try secret(bytes)
            let isFilled = copy(used) == bytes
            #expect(isFilled)
            return address(used)
        }
        let usedAddress = try use()
        // Slots stay mapped. Another test may have allocated this one since, but not with these bytes.
        let left = unsafe Array(UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: usedAddress), count: bytes.count))
        #expect(zip(left, bytes).count { $0 == $1 } < 16)
    }

    @Test("The pages are locked, excluded from core dumps, and wiped in a forked child", arguments: [32, 5_000])
    func pageFlags(_ byteCount: Int) throws {
        let secret = try SecretBytes(randomByteCount: byteCount)
        let flags = try #require(try Self.memoryFlags(at: address(secret)))
        #expect(flags.contains("dd"), "in core dumps")
        #expect(flags.contains("wf"), "copied into children")
        #expect(flags.contains("lo") || !SecretArena.isFullyLocked, "not locked, and not admitted")
        #expect(secret.byteCount == byteCount)
    }

    /// The flags of the mapping that contains an address.
    private static func memoryFlags(at address: UInt) throws -> Set<Substring>? {
        // String(contentsOfFile:) reads at most a page of a file in /proc.
        let smaps = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/smaps")).readToEnd() ?? Data()
        var isInside = false
        for line in String(decoding: smaps, as: UTF8.self).split(separator: "\n") {
            let range = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
            if range.count == 2 {
                isInside = range[0] <= address && address < range[1]
            } else if isInside, line.hasPrefix("VmFlags:") {
                return Set(line.dropFirst("VmFlags:".count).split(separator: " "))
            }
        }
        return nil
    }

    @Test("Secrets allocated and freed by many tasks keep their bytes")
    func concurrentUse() async {
        await withTaskGroup(of: Bool.self) { group in
            for seed in 0..<8 {
                group.addTask {
                    for round in 0..<500 {
                        let bytes = (0..<48).map { UInt8(truncatingIfNeeded: $0 &* seed &+ round) }
                        guard let secret = try? self.secret(bytes), self.copy(secret) == bytes else { return false }
                    }
                    return true
                }
            }
            for await isSound in group { #expect(isSound) }
        }
    }
}

@Suite("A timed lock")
struct TimedLockTests {
    @Test("A waiter times out at the deadline, and not before")
    func deadline() {
        let lock = TimedLock()
        #expect(lock.acquire(untilNanoseconds: 0))
        #expect(!lock.acquire(untilNanoseconds: 0))
        #expect(!lock.acquire(withinSeconds: 0))
        lock.release()
        #expect(lock.acquire(withinSeconds: 0))
    }

    /// A lock, and the number of threads in the critical section.
    private final class Room: Sendable {
        private let lock = TimedLock()
        private let inside = Atomic(0)
        let mostInside = Atomic(0)

        /// Acquires and releases the lock so many times, and returns how often it succeeded.
        func visit(times: Int) -> Int {
            var visits = 0
            for _ in 0..<times where lock.acquire(withinSeconds: 600) {
                mostInside.max(inside.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
                visits += 1
                inside.subtract(1, ordering: .relaxed)
                lock.release()
            }
            return visits
        }
    }

    @Test("Every waiter acquires the lock, one at a time")
    func turns() async {
        let room = Room()
        let visits = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 { group.addTask { room.visit(times: 200) } }
            return await group.reduce(0, +)
        }
        #expect(visits == 800)
        #expect(room.mostInside.load(ordering: .relaxed) == 1)
    }
}
