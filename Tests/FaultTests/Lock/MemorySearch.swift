// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainTestSupport

/// Searches the memory of another process for secrets.
struct MemorySearch {
    private struct Part {
        let name: String
        let bytes: [UInt8]
    }

    /// The result of a search.
    struct Finding {
        var names: Set<String> = []
        var searchedByteCount = 0
        /// Pages beyond the end of a mapped file, and pages that the kernel does not let other processes read.
        var unreadableByteCount = 0
    }

    /// The memory that is searched.
    enum Extent {
        case readable
        /// A small part of the readable memory: without programs and other read-only files.
        case writable
    }

    private let parts: [Part]
    private let soughtValues: SoughtValues

    private static let windowByteCount = 1 << 20
    private static let pageByteCount: UInt = 4_096
    private static let keyByteCount = 32

    /// - Parameter secrets: By name; each of at least 16 bytes, because shorter ones would be found by chance. Either half of a key of 32
    ///   bytes counts as the key, since freed memory is often overwritten in part.
    init(secrets: [String: [UInt8]]) {
        parts = secrets.flatMap { name, secret in
            guard secret.count == Self.keyByteCount else { return [Part(name: name, bytes: secret)] }
            return [Part(name: name, bytes: Array(secret.prefix(16))), Part(name: name, bytes: Array(secret.suffix(16)))]
        }
        soughtValues = SoughtValues(parts.map(\.bytes))
    }

    /// Searches the memory of the process.
    ///
    /// Throws if the process does not permit it.
    func run(on processID: pid_t, _ extent: Extent = .readable) throws -> Finding {
        let memory = unsafe open("/proc/\(processID)/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        defer { close(memory) }
        var finding = Finding()
        var window = [UInt8](repeating: 0, count: Self.windowByteCount)
        for region in try Self.regions(of: processID) where extent == .readable || region.isWritable {
            search(region, of: memory, through: &window, &finding)
        }
        return finding
    }

    /// Returns the names of the secrets in the process's memory.
    func namesFound(in processID: pid_t, _ extent: Extent = .readable) throws -> Set<String> {
        try run(on: processID, extent).names
    }

    /// Foundation would read only the first part of such a file.
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
        /// False for the kernel's own pages, which hold no data of the process.
        let isReadable: Bool
        let isWritable: Bool

        /// A line as proc_pid_maps(5) describes it.
        init?(_ line: Substring) {
            let fields = line.split(separator: " ")
            guard fields.count >= 5 else { return nil }
            let bounds = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard bounds.count == 2 else { return nil }
            (start, end) = (bounds[0], bounds[1])
            let name = fields.count > 5 ? fields[5] : ""
            isReadable = fields[1].hasPrefix("r") && !name.hasPrefix("[vvar") && name != "[vsyscall]"
            isWritable = fields[1].dropFirst().hasPrefix("w")
        }
    }

    private func search(_ region: Region, of memory: Int32, through window: inout [UInt8], _ finding: inout Finding) {
        guard region.isReadable else { return }
        // Windows overlap, so that a secret on a boundary is found.
        let overlap = UInt((parts.map(\.bytes.count).max() ?? 1) - 1)
        var start = region.start
        /// The first byte that has not been searched.
        var next = region.start
        while next < region.end {
            let wanted = min(UInt(window.count), region.end - start)
            // At most `wanted` bytes, which the window holds.
            let count = unsafe pread(memory, &window, Int(wanted), off_t(start))
            guard count > 0, start + UInt(count) > next else {
                // Beyond the end of a mapped file, or unmapped meanwhile. The next page may be readable.
                let page = min((next / Self.pageByteCount + 1) * Self.pageByteCount, region.end)
                finding.unreadableByteCount += Int(page - next)
                (start, next) = (page, page)
                continue
            }
            finding.names.formUnion(soughtValues.indices(in: window, count: count).map { parts[$0].name })
            finding.searchedByteCount += Int(start + UInt(count) - next)
            next = start + UInt(count)
            start = max(region.start, next - min(next, overlap))
        }
    }
}
