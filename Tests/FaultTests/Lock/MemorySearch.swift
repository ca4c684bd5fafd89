// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// Searches the memory of another process, from outside, for secrets that must not be there.
struct MemorySearch {
    /// Each by a name; of at least 16 bytes, or chance would find it.
    let secrets: [String: [UInt8]]

    private static let windowByteCount = 1 << 20

    /// The names of the secrets that lie anywhere in the process's memory.
    ///
    /// Throws when the memory may not be read: then nothing is known.
    func namesFound(in processID: pid_t) throws -> Set<String> {
        let memory = unsafe open("/proc/\(processID)/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        defer { close(memory) }
        var found: Set<String> = []
        for region in try Self.regions(of: processID) { search(region, of: memory, &found) }
        return found
    }

    /// Foundation takes the first part that the kernel gives of such a file for all of it.
    private static func regions(of processID: pid_t) throws -> [Region] {
        let maps = unsafe open("/proc/\(processID)/maps", O_RDONLY | O_CLOEXEC)
        guard maps >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        defer { close(maps) }
        var text: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while true {
            // At most as many bytes as the part has.
            let count = unsafe read(maps, &part, part.count)
            guard count >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            if count == 0 { break }
            text += part[..<count]
        }
        return String(decoding: text, as: UTF8.self).split(separator: "\n").compactMap(Region.init)
    }

    private struct Region {
        let start: UInt
        let end: UInt
        /// The kernel's own pages cannot be read from outside and hold no data of the process.
        let isReadable: Bool

        /// A line as proc_pid_maps(5) describes it.
        init?(_ line: Substring) {
            let fields = line.split(separator: " ")
            guard fields.count >= 5 else { return nil }
            let bounds = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard bounds.count == 2 else { return nil }
            (start, end) = (bounds[0], bounds[1])
            let name = fields.count > 5 ? fields[5] : ""
            isReadable = fields[1].hasPrefix("r") && !name.hasPrefix("[vvar") && name != "[vsyscall]"
        }
    }

    private func search(_ region: Region, of memory: Int32, _ found: inout Set<String>) {
        guard region.isReadable else { return }
        // Windows overlap by what the longest secret needs.
        let overlap = UInt((secrets.values.map(\.count).max() ?? 1) - 1)
        var window = [UInt8](repeating: 0, count: Self.windowByteCount)
        var start = region.start
        while start < region.end {
            let wanted = min(UInt(window.count), region.end - start)
            // At most `wanted` bytes, which the window holds.
            let count = unsafe pread(memory, &window, Int(wanted), off_t(start))
            // Part of a mapped file beyond its end, or memory that was given back meanwhile.
            guard count > 0 else { return }
            for (name, secret) in secrets where !found.contains(name) {
                if Self.contains(secret, window, count) { found.insert(name) }
            }
            if UInt(count) == region.end - start { return }
            start += max(UInt(count), overlap + 1) - overlap
        }
    }

    private static func contains(_ secret: [UInt8], _ window: [UInt8], _ count: Int) -> Bool {
        // Most memory is zeros: a byte that is none is rarely met by chance.
        guard secret.count <= count, let anchor = secret.firstIndex(where: { $0 != 0 && $0 != 0xff }) else { return false }
        // Every access is within the first `count` bytes of the window.
        return unsafe window.withUnsafeBytes { window in
            guard let base = window.baseAddress else { return false }
            var position = anchor
            let last = count - secret.count + anchor
            while position <= last, let hit = unsafe memchr(base + position, Int32(secret[anchor]), last - position + 1) {
                let offset = unsafe base.distance(to: UnsafeRawPointer(hit))
                if unsafe memcmp(base + (offset - anchor), secret, secret.count) == 0 { return true }
                position = offset + 1
            }
            return false
        }
    }
}
