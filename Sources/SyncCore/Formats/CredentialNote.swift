// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// What every device of a circle is told of a credential, by the statement that admits its reader.
///
///     version (1) ‖ date of expiry (8) ‖ counted(name)
///
/// Statements are readable, so the note is sealed under a key of the lane `afterFirstUnlock`.
package struct CredentialNote: Hashable, Sendable {
    package let name: DeviceName
    /// From when on machines refuse the credential, in seconds since 2001-01-01 00:00:00 UTC.
    package let expiration: Double

    private static let version: UInt8 = 1

    package init(name: DeviceName, expiration: Double) {
        self.name = name
        self.expiration = expiration
    }

    package var encoded: [UInt8] {
        var bytes: [UInt8] = [Self.version]
        bytes.append(seconds: expiration)
        bytes.append(lengthPrefixed: name.utf8)
        return bytes
    }

    package init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(Self.version)
        expiration = try reader.seconds()
        guard let name = DeviceName(utf8: try reader.counted(atMost: DeviceName.largestByteCount)) else { throw .malformed }
        self.name = name
        try reader.end()
    }

    /// The note in a statement: `lane key id (16) ‖ wrapped content key (40) ‖ counted(ciphertext)`.
    package struct Sealed: Hashable, Sendable {
        package let laneKey: LaneKeyID
        package let content: SealedContent

        /// More than the largest note has with its padding.
        private static let largestCiphertextByteCount = 512

        package init(laneKey: LaneKeyID, content: SealedContent) {
            self.laneKey = laneKey
            self.content = content
        }

        func append(to bytes: inout [UInt8]) {
            bytes.append(laneKey)
            bytes.append(contentsOf: content.wrappedKey)
            bytes.append(lengthPrefixed: content.ciphertext)
        }

        init(from reader: inout FieldReader) throws(FormatError) {
            laneKey = LaneKeyID(try reader.identifier())
            let wrappedKey = try reader.bytes(SealedContent.wrappedKeyByteCount)
            content = SealedContent(wrappedKey: wrappedKey, ciphertext: try reader.counted(atMost: Self.largestCiphertextByteCount))
        }
    }

    /// Returns what the sealed note is bound to: "KSCN" ‖ version (1) ‖ circle (16) ‖ device (16) ‖ lane key id (16).
    package static func header(circle: CircleID, device: DeviceID, laneKey: LaneKeyID) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append("KSCN")
        bytes.append(version)
        bytes.append(circle)
        bytes.append(device)
        bytes.append(laneKey)
        return bytes
    }
}
