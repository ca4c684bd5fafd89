// SPDX-License-Identifier: Apache-2.0
internal import CKeychainTestShims
import Glibc
package import KeychainCore

extension UnsafeRawBufferPointer {
    /// Whether the bytes occur in the buffer, as memmem(3) finds them.
    package func contains(bytes: [UInt8]) -> Bool {
        // Both buffers outlive the call.
        unsafe keychain_test_contains(baseAddress, count, bytes, bytes.count)
    }
}

/// Values of at least 16 bytes that are sought together.
package struct SoughtValues: Sendable {
    private let bytes: [UInt8]
    private let byteCounts: [Int]

    package init(_ values: [[UInt8]]) {
        precondition(values.allSatisfy { $0.count >= 16 })
        bytes = values.flatMap(\.self)
        byteCounts = values.map(\.count)
    }

    /// Returns the indices of the values in the first `count` bytes of `buffer`.
    package func indices(in buffer: [UInt8], count: Int) -> [Int] {
        precondition(count <= buffer.count)
        var found = [Bool](repeating: false, count: byteCounts.count)
        // Every buffer outlives the call, which reads `count` bytes of the first and writes as many elements as there are values.
        unsafe keychain_test_find_each(buffer, count, bytes, byteCounts.map { size_t($0) }, byteCounts.count, &found)
        return found.indices.filter { found[$0] }
    }
}

/// Searches this process's own memory.
package enum OwnMemory {
    /// Bytes to search for, kept masked so that a search does not find its own needle.
    package struct Needle: Sendable {
        fileprivate static let mask: UInt8 = 0x55
        fileprivate let masked: [UInt8]

        /// - Parameter masked: Each byte XORed with `mask`.
        package init(masked: [UInt8]) {
            self.masked = masked
        }

        /// Returns the unmasked bytes, in memory for keys.
        package func secret() throws -> SecretBytes {
            // Each byte is written within the region, which has as many.
            try unsafe SecretBytes(byteCount: masked.count) { buffer in
                for index in masked.indices { unsafe buffer[index] = masked[index] ^ Self.mask }
            }
        }
    }

    /// Returns whether the bytes are in memory that this process can write.
    package static func holds(_ needle: Needle) throws -> Bool {
        let memory = unsafe Glibc.open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { throw POSIXFailure(number: errno) }
        defer { close(memory) }
        let ranges = try writableRanges()
        var isFound = false
        // In memory for keys, so that the copy of the searched memory is wiped.
        _ = try unsafe SecretBytes(byteCount: 1 << 20) { buffer in
            isFound = ranges.contains { unsafe holds(needle, in: $0, of: memory, through: buffer) }
        }
        return isFound
    }

    private static func writableRanges() throws -> [Range<UInt64>] {
        // Foundation would read only the first page of such a file.
        let maps = unsafe fopen("/proc/self/maps", "re")
        guard let maps = unsafe maps else { throw POSIXFailure(number: errno) }
        defer { unsafe fclose(maps) }
        var ranges: [Range<UInt64>] = []
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { unsafe free(line) }
        while unsafe getline(&line, &capacity, maps) > 0, let text = unsafe line.map({ unsafe String(cString: $0) }) {
            let parts = text.split(separator: " ")
            let bounds = parts.first?.split(separator: "-").compactMap { UInt64($0, radix: 16) } ?? []
            guard bounds.count == 2, parts.count > 1, parts[1].hasPrefix("rw") else { continue }
            ranges.append(bounds[0]..<bounds[1])
        }
        return ranges
    }

    private struct POSIXFailure: Error {
        let number: Int32
    }

    private static func holds(
        _ needle: Needle, in range: Range<UInt64>, of memory: Int32, through buffer: UnsafeMutableRawBufferPointer
    ) -> Bool {
        stride(from: range.lowerBound, to: range.upperBound, by: buffer.count - needle.masked.count).contains { start in
            let wanted = min(UInt64(buffer.count), range.upperBound - start)
            // Reading a range that has been unmapped fails. At most as many bytes are read as the buffer has.
            let count = unsafe pread(memory, buffer.baseAddress, Int(wanted), off_t(start))
            return unsafe count > 0 && contains(needle, UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }

    private static func contains(_ needle: Needle, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let first = needle.masked.first, var next = bytes.baseAddress else { return false }
        let end = unsafe next + bytes.count
        // Every pointer is within `bytes`: the search ends where the needle no longer fits.
        while unsafe next + needle.masked.count <= end,
            let candidate = unsafe memchr(next, Int32(first ^ Needle.mask), next.distance(to: end) - needle.masked.count + 1)
        {
            let isMatch = needle.masked.indices.allSatisfy { index in
                unsafe candidate.load(fromByteOffset: index, as: UInt8.self) == needle.masked[index] ^ Needle.mask
            }
            if isMatch { return true }
            unsafe next = UnsafeRawPointer(candidate) + 1
        }
        return false
    }
}
