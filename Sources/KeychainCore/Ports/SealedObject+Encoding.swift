// SPDX-License-Identifier: Apache-2.0

/// A sealed object as a keybag keeps it:
///
///     version (1) = 1 ‖ counted(root key name) ‖ counted(public area) ‖ counted(private area)
///
/// Limited in size and exact in structure, since the one that holds the device secret is read before anything can authenticate it.
extension SealedObject {
    private static let version: UInt8 = 1
    /// The algorithm of a digest (2) and the longest digest.
    private static let nameByteCounts = 3...66
    /// Several times what a chip needs for 64 bytes.
    private static let areaByteCounts = 3...1_024

    package var encoded: [UInt8] {
        var bytes = [Self.version]
        bytes.append(lengthPrefixed: rootKeyName)
        bytes.append(lengthPrefixed: publicArea)
        bytes.append(lengthPrefixed: privateArea)
        return bytes
    }

    /// Why bytes are no sealed object.
    package enum EncodingFailure: Error, Hashable, Sendable {
        case newerVersion
        case malformed
    }

    /// Parses `encoded`, and nothing else.
    package init(encoded: some Collection<UInt8>) throws(EncodingFailure) {
        var reader = ByteReader(encoded)
        guard let version = reader.readByte(), version > 0 else { throw .malformed }
        guard version == Self.version else { throw .newerVersion }
        guard let name = reader.readLengthPrefixed(), let publicArea = reader.readLengthPrefixed(),
            let privateArea = reader.readLengthPrefixed(), reader.isAtEnd, Self.nameByteCounts.contains(name.count),
            Self.areaByteCounts.contains(publicArea.count), Self.areaByteCounts.contains(privateArea.count),
            Self.isCounted(publicArea), Self.isCounted(privateArea)
        else { throw .malformed }
        self.init(rootKeyName: Array(name), publicArea: Array(publicArea), privateArea: Array(privateArea))
    }

    /// A TPM's own encoding begins with the number of bytes that follow, big-endian: one that lies is not shown to it.
    private static func isCounted(_ area: ArraySlice<UInt8>) -> Bool {
        area.prefix(2).reduce(0) { $0 << 8 | Int($1) } == area.count - 2
    }
}
