// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The messages by which a device joins a circle, each sealed under the code of the invitation.
///
/// The approver's nonce is committed to before the joiner answers, and revealed to the first request only. So storage that has a leaked code
/// cannot choose its messages until both screens show the same number.
///
///     offer   = version (1) ‖ circle (16) ‖ approver (16) ‖ SHA-256(approver's nonce) (32)
///     request = version (1) ‖ SHA-256(offer) (32) ‖ public keys (96) ‖ joiner's nonce (32) ‖ counted device name
///     reveal  = version (1) ‖ approver's nonce (32) ‖ SHA-256(request) (32)
///     answer  = version (1) ‖ approver's public keys (96) ‖ counted founding statement ‖ counted admission ‖ marks
///               ‖ presence (1) ‖ [checkpoint (32)] ‖ signature (64)
///     end     = version (1) ‖ SHA-256(request), or zeros if there was none (32)
///
/// The signature of the answer covers a label, the request's hash, and the hash of everything before the signature. The offer has the hash of the
/// approver's public keys, so storage that has a leaked code cannot alter the answer either.
package enum JoinMessage: Hashable, Sendable {
    case offer(Offer)
    case request(Request)
    case reveal(nonce: [UInt8], request: ObjectHash)
    case answer(Answer)
    /// Either side has ended the attempt, and the code cannot be used any more.
    case end(request: ObjectHash)

    package struct Offer: Hashable, Sendable {
        package let circle: CircleID
        package let approver: DeviceID
        package let commitment: ObjectHash

        package init(circle: CircleID, approver: DeviceID, commitment: ObjectHash) {
            self.circle = circle
            self.approver = approver
            self.commitment = commitment
        }
    }

    package struct Request: Hashable, Sendable {
        package let offer: ObjectHash
        package let keys: DevicePublicKeys
        package let nonce: [UInt8]
        package let deviceName: [UInt8]

        package init(offer: ObjectHash, keys: DevicePublicKeys, nonce: [UInt8], deviceName: [UInt8]) {
            self.offer = offer
            self.keys = keys
            self.nonce = nonce
            self.deviceName = deviceName
        }
    }

    package struct Answer: Hashable, Sendable {
        package let approver: DevicePublicKeys
        package let founding: [UInt8]
        package let admission: [UInt8]
        package let marks: [LogMark]
        package let checkpoint: CheckpointHash?
        package var signature: [UInt8]

        /// Creates an answer that is not signed yet.
        package init(
            approver: DevicePublicKeys, founding: [UInt8], admission: [UInt8], marks: [LogMark], checkpoint: CheckpointHash?,
            signature: [UInt8] = []
        ) {
            self.approver = approver
            self.founding = founding
            self.admission = admission
            self.marks = marks
            self.checkpoint = checkpoint
            self.signature = signature
        }
    }

    package static let nonceByteCount = 32
    package static let kinds: ClosedRange<UInt8> = 1...5
    /// No sealed message is larger: the answer has the most, with two statements and the largest number of marks.
    package static let largestSealedByteCount = 131_072
    static let largestFoundingByteCount = 512
    /// The size of an admission with the largest number of heads, rounded up.
    static let largestAdmissionByteCount = 16_384
    private static let version: UInt8 = 1

    /// The kind under which the message is sealed.
    package var kind: UInt8 {
        switch self {
        case .offer: 1
        case .request: 2
        case .reveal: 3
        case .answer: 4
        case .end: 5
        }
    }

    package var encoded: [UInt8] {
        var bytes: [UInt8] = [Self.version]
        switch self {
        case .offer(let offer):
            bytes.append(offer.circle)
            bytes.append(offer.approver)
            bytes.append(offer.commitment)
        case .request(let request):
            bytes.append(request.offer)
            bytes.append(request.keys)
            bytes.append(contentsOf: request.nonce)
            bytes.append(lengthPrefixed: request.deviceName)
        case .reveal(let nonce, let request):
            bytes.append(contentsOf: nonce)
            bytes.append(request)
        case .end(let request): bytes.append(request)
        case .answer(let answer): bytes = Self.unsignedBytes(answer) + answer.signature
        }
        return bytes
    }

    private static func unsignedBytes(_ answer: Answer) -> [UInt8] {
        var bytes: [UInt8] = [version]
        bytes.append(answer.approver)
        bytes.append(lengthPrefixed: answer.founding)
        bytes.append(lengthPrefixed: answer.admission)
        bytes.append(marks: answer.marks)
        bytes.append(answer.checkpoint == nil ? 0 : 1)
        if let checkpoint = answer.checkpoint { bytes.append(checkpoint) }
        return bytes
    }

    /// Returns what the approver signs: a label, the hash of the request, and the hash of the answer without its signature.
    package static func signedMessage(_ answer: Answer, to request: Request, cipher: any CircleCipher) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append("keychain sync answer v1")
        bytes.append(cipher.hash(JoinMessage.request(request).encoded))
        bytes.append(cipher.hash(unsignedBytes(answer)))
        return bytes
    }

    package init(kind: UInt8, _ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(Self.version)
        switch kind {
        case 1:
            let circle = CircleID(try reader.identifier())
            let approver = DeviceID(try reader.identifier())
            self = .offer(Offer(circle: circle, approver: approver, commitment: try reader.hash()))
        case 2:
            let offer = try reader.hash()
            let keys = try reader.publicKeys()
            let nonce = try reader.bytes(Self.nonceByteCount)
            self = .request(
                Request(offer: offer, keys: keys, nonce: nonce, deviceName: try reader.counted(atMost: BatchNotes.largestNameByteCount)))
        case 3:
            let nonce = try reader.bytes(Self.nonceByteCount)
            self = .reveal(nonce: nonce, request: try reader.hash())
        case 4:
            let approver = try reader.publicKeys()
            let founding = try reader.counted(atMost: Self.largestFoundingByteCount)
            let admission = try reader.counted(atMost: Self.largestAdmissionByteCount)
            let marks = try reader.marks(atMost: BatchNotes.largestMarkCount)
            let presence = try reader.byte()
            guard presence <= 1 else { throw .malformed }
            let checkpoint = presence == 1 ? try reader.hash() : nil
            self = .answer(
                Answer(
                    approver: approver, founding: founding, admission: admission, marks: marks, checkpoint: checkpoint,
                    signature: try reader.bytes(LogMark.signatureByteCount)))
        case 5: self = .end(request: try reader.hash())
        default: throw .newer
        }
        try reader.end()
    }

    /// The number of eight digits that both screens show: SHA-256(label ‖ offer ‖ request ‖ approver's nonce).
    package static func number(offer: Offer, request: Request, nonce: [UInt8], cipher: any CircleCipher) -> UInt32 {
        var bytes: [UInt8] = []
        bytes.append("keychain sync number v1")
        bytes += JoinMessage.offer(offer).encoded + JoinMessage.request(request).encoded + nonce
        return UInt32(cipher.hash(bytes).prefix.high % 100_000_000)
    }
}
