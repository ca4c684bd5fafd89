// SPDX-License-Identifier: Apache-2.0

/// The bytes of a file.
struct FileContent: Hashable {
    private(set) var bytes: [UInt8] = []

    mutating func apply(_ change: DiskFile.Change) {
        switch change {
        case .truncation(let byteCount): resize(to: byteCount)
        case .write(let offset, let new):
            if offset + new.count > bytes.count { resize(to: offset + new.count) }
            // The place was made large enough just now.
            unsafe bytes.withUnsafeMutableBytes { place in
                unsafe UnsafeMutableRawBufferPointer(rebasing: place[offset..<offset + new.count]).copyBytes(from: new)
            }
        }
    }

    private mutating func resize(to byteCount: Int) {
        if byteCount < bytes.count {
            bytes.removeLast(bytes.count - byteCount)
        } else {
            bytes += [UInt8](repeating: 0, count: byteCount - bytes.count)
        }
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(bytes.count)
        // At once: byte by byte it would take most of the time of a run.
        unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }
}
