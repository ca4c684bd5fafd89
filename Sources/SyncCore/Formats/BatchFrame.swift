// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A signed and sealed batch as it lies in the storage.
///
///     "KSBT" ‖ version (1) ‖ circle (16) ‖ log (16) ‖ device (16) ‖ lane (1) ‖ number (8) ‖ previous hash (32) ‖ lane key id (16)
///     ‖ wrapped key (40) ‖ counted ciphertext ‖ signature (64)
///
/// The hash of a batch is the SHA-256 of everything before the signature. The signature covers `signedMessage`, so the number and the hash
/// can be proved to others without the content.
package struct BatchFrame: Hashable, Sendable {
    package let header: Header
    package let sealed: SealedContent
    package let signature: [UInt8]

    /// The largest batch: an item of the largest size that replaces as many versions as one can, the longest notes, and the padding.
    package static let largestByteCount = 1_310_720
    private static let version: UInt8 = 1

    /// The part to which the ciphertext is bound.
    package struct Header: Hashable, Sendable {
        package let circle: CircleID
        package let log: LogID
        package let device: DeviceID
        package let lane: Lane
        package let number: UInt64
        package let previous: BatchHash
        package let laneKey: LaneKeyID

        package init(
            circle: CircleID, log: LogID, device: DeviceID, lane: Lane, number: UInt64, previous: BatchHash, laneKey: LaneKeyID
        ) {
            self.circle = circle
            self.log = log
            self.device = device
            self.lane = lane
            self.number = number
            self.previous = previous
            self.laneKey = laneKey
        }

        package var encoded: [UInt8] {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(110)
            bytes.append("KSBT")
            bytes.append(BatchFrame.version)
            bytes.append(circle)
            bytes.append(log)
            bytes.append(device)
            bytes.append(lane.rawValue)
            bytes.append(littleEndian: number)
            bytes.append(previous)
            bytes.append(laneKey)
            return bytes
        }
    }

    package init(header: Header, sealed: SealedContent, signature: [UInt8]) {
        self.header = header
        self.sealed = sealed
        self.signature = signature
    }

    /// Everything before the signature.
    package static func unsignedBytes(_ header: Header, _ sealed: SealedContent) -> [UInt8] {
        var bytes = header.encoded
        bytes.append(contentsOf: sealed.wrappedKey)
        bytes.append(lengthPrefixed: sealed.ciphertext)
        return bytes
    }

    package var encoded: [UInt8] { Self.unsignedBytes(header, sealed) + signature }

    package init(_ bytes: [UInt8]) throws(FormatError) {
        guard bytes.count <= Self.largestByteCount else { throw .malformed }
        var reader = FieldReader(bytes)
        try reader.header("KSBT", version: Self.version)
        let circle = CircleID(try reader.identifier())
        let log = LogID(try reader.identifier())
        let device = DeviceID(try reader.identifier())
        guard let lane = Lane(rawValue: try reader.byte()) else { throw .malformed }
        let number = try reader.uint64()
        let previous = try reader.hash()
        guard number > 0, (number == 1) == (previous == .none) else { throw .malformed }
        header = Header(
            circle: circle, log: log, device: device, lane: lane, number: number, previous: previous,
            laneKey: LaneKeyID(try reader.identifier()))
        let wrappedKey = try reader.bytes(SealedContent.wrappedKeyByteCount)
        sealed = SealedContent(wrappedKey: wrappedKey, ciphertext: try reader.counted(atMost: Self.largestByteCount))
        signature = try reader.bytes(LogMark.signatureByteCount)
        try reader.end()
    }

    /// The message that the signature of a batch covers.
    package static func signedMessage(
        circle: CircleID, log: LogID, number: UInt64, previous: BatchHash, hash: BatchHash
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(128)
        bytes.append("keychain sync batch v1")
        bytes.append(circle)
        bytes.append(log)
        bytes.append(littleEndian: number)
        bytes.append(previous)
        bytes.append(hash)
        return bytes
    }
}

extension LogMark {
    /// The message that the signature covers.
    func signedMessage(circle: CircleID) -> [UInt8] {
        BatchFrame.signedMessage(circle: circle, log: log, number: number, previous: previous, hash: hash)
    }
}
