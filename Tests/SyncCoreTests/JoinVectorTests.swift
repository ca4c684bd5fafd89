// SPDX-License-Identifier: Apache-2.0
import Keybag
import KeychainCore
import KeychainTestSupport
import SyncCore
import Testing

@Suite("Joining agrees with another implementation")
struct JoinVectorTests {
    private struct Vectors: Decodable {
        struct Keys: Decodable {
            let signing: Hexadecimal
            let whenUnlockedBox: Hexadecimal
            let afterFirstUnlockBox: Hexadecimal
        }

        struct Message: Decodable {
            let kind: UInt8
            let content: Hexadecimal
            let message: Hexadecimal
        }

        struct Joining: Decodable {
            let circle: Hexadecimal
            let joiner: Keys
            let joinerNonce: Hexadecimal
            let deviceName: String
            let checkpoint: Hexadecimal
            let number: UInt32
            let messages: [Message]
        }

        let invitationCode: Hexadecimal
        let joining: Joining
    }

    private let cipher = CircleCryptography()

    @Test("A device joins by the messages of another implementation")
    func joins() throws {
        let vectors = try TestVectors.load("circle-v1.json", as: Vectors.self)
        let joining = vectors.joining
        // The bytes are copied within the closure.
        let code = SharedSecretBytes(try unsafe SecretBytes(byteCount: 16) { unsafe $0.copyBytes(from: vectors.invitationCode.bytes) })
        let invitation = try cipher.invitationID(of: code)
        let keys = try #require(
            DevicePublicKeys(
                signing: joining.joiner.signing.bytes, whenUnlockedBox: joining.joiner.whenUnlockedBox.bytes,
                afterFirstUnlockBox: joining.joiner.afterFirstUnlockBox.bytes))
        let circle = try #require(CircleID(joining.circle.bytes))
        let name = try #require(DeviceName(joining.deviceName))
        var request = try JoinRequest(
            code: code, circle: circle, keys: keys, deviceName: name, nonce: joining.joinerNonce.bytes, cipher: cipher, now: 0)

        var shown: [String: [UInt8]] = [:]
        func show(_ kind: UInt8) throws -> [SyncEffect] {
            let message = try #require(joining.messages.first { $0.kind == kind })
            #expect(try JoinMessage(kind: kind, message.content.bytes).encoded == message.content.bytes)
            shown[ObjectName.joinMessage(invitation, cipher.hash(message.message.bytes)).text] = message.message.bytes
            var effects: [SyncEffect] = []
            for case .read(let name, _) in try request.step(.listed(.joinMessages, shown.keys.sorted()), now: 1) {
                effects += try request.step(.read(name, shown[name]), now: 1)
            }
            return effects
        }

        var published: [UInt8]?
        for case .create(let name, let bytes) in try show(1) {
            published = try cipher.openJoinMessage(bytes, kind: 2, code: code)
            shown[name] = bytes
        }
        #expect(published == joining.messages.first { $0.kind == 2 }?.content.bytes)
        _ = try show(3)
        #expect(request.state == .asking(JoinNumber(joining.number)))
        _ = try request.confirm(now: 1)
        _ = try show(4)
        guard case .joined(let joined) = request.state else {
            Issue.record("\(request.state)")
            return
        }
        let end = try #require(joining.messages.first { $0.kind == 5 })
        #expect(try JoinMessage(kind: 5, end.content.bytes).encoded == end.content.bytes)
        #expect(try cipher.openJoinMessage(end.message.bytes, kind: 5, code: code) == end.content.bytes)
        #expect(joined.membership == Membership(circle: circle, device: DeviceID(of: keys, role: .writer, cipher: cipher)))
        #expect(joined.role == .writer && joined.checkpoint?.bytes == joining.checkpoint.bytes && joined.marks.map(\.number) == [7])
    }
}
