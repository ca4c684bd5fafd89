// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import KeychainCore
internal import KeychainIPC

/// Messages between a program and keychaind, of both sides: the packets of a message, and its fields.
final class DaemonMessageTarget: FuzzTarget {
    static let name = "daemon-message"

    static func seeds() throws -> [[UInt8]] {
        let query = ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("Skroob")]))
        let constraint = AccessControl.Constraint.all([.any([.userPresence, .companion]), .applicationPassword])
        let context = ContextReference(
            token: Identifier128(high: 1, low: 2), settings: AuthenticationContext.Settings(),
            password: .given(SharedSecretBytes(try FixedKeys.secret(1, byteCount: 4))))
        let digest = Identifier128(high: 3, low: 4)
        let row = HandedOverRow(
            SealedRow(
                header: RowHeader(
                    reference: PersistentReference(itemClass: .genericPassword, id: digest), accessibility: .always, classKeyGeneration: 1,
                    revision: digest, isSynchronizable: false, isTombstone: false, serviceDigest: digest, accountDigest: digest,
                    remainingKeyDigest: digest, accessGroupDigest: digest, attributeDigests: [AttributeDigest(.account, digest)]),
                wrappedItemKey: [1], sealedAttributes: [2], sealedSecret: [3], tag: [4]), quarantineSeconds: 1)
        let calls: [Call] = [
            .add(
                AddRequest(
                    itemClass: .genericPassword, attributes: query.attributes, secret: Data([1]),
                    accessControl: AccessControl(.whenUnlocked, constraint: constraint))),
            .copyMatching(MatchRequest(query: query)), .update(UpdateRequest(query: query, secret: Data([2]))),
            .delete(DeleteRequest(query: query)), .lock(.everything), .authenticate(constraint, nil, Authentication()),
            .unlock(SharedSecretBytes(try FixedKeys.secret(1, byteCount: 4)), .standard), .beginRelease(user: 1),
            .beginAdoption(
                KeychainKeys(
                    storeID: Identifier128(high: 1, low: 2), keybag: [1, 2], keybagGeneration: 3,
                    deviceSecret: SharedSecretBytes(try FixedKeys.secret(1, byteCount: 4)))),
            .insertRows([row]), .unlockAtLogin(user: 1, SharedSecretBytes(try FixedKeys.secret(1, byteCount: 4))),
            .places(account: "a", services: ["b", "c"]), .identify(process: 1),
            .fingerprintAnswer(FingerprintAnswer(nonce: digest, result: .success, mismatchCount: 1, reader: "a", fingers: ["b", "c"])),
        ]
        let place = ItemPlace(accessGroup: "a", service: "b", accessibility: .always, isSynchronizable: true)
        var survey = ItemSurvey()
        survey.accounts = [place: ["Skroob"]]
        survey.internetPasswordCounts = [Array("a".utf8): 1]
        let replies: [Reply] = [
            .done, .identified(.credential, accessGroups: ["a"]), .keptKeychain(.inUse, storeID: nil), .path("/a"), .survey(survey),
            .places([place]), .biometryStatus(BiometryStatus(hasReader: true, domainState: [1], isExact: true)),
            .fingerprintTask(FingerprintTask(nonce: digest, kind: .verify, user: 1, attemptCount: 2, timeoutSeconds: 3)),
            .rows([row], isLast: true),
            .items([
                KeychainItem(
                    reference: PersistentReference(itemClass: .genericPassword, id: Identifier128(high: 1, low: 2)),
                    attributes: query.attributes, accessControl: AccessControl(.always), secret: Data([1]))
            ]),
            .failure(KeychainFailure(.notAvailable, "a reason", path: "/", subject: .store, cause: .system(errno: 5), remedy: .repair)),
        ]
        let messages =
            calls.map { Request($0, context: context).message } + replies.map { Response($0, password: .entered).message } + [
                Hello(nonce: Array(1...16)).message,
                Identification(nonce: Array(1...16), applicationIdentifier: "app", accessGroups: ["a"], isAppClip: false).message,
            ]
        return messages.map { message in
            var bytes: [UInt8] = []
            message.forEachPacket { bytes += $0 }
            return bytes
        }
    }

    init() {}

    func run(_ input: [UInt8]) throws {
        var assembly = MessageAssembly(limit: 1 << 16)
        guard let message = try? assembly.add(input[...]) else { return }
        expect(message.body.count + WireProtocol.headerByteCount == input.count, "a packet is accepted with more or less than its body")
        guard let again = try? Self.written(message) else { return }
        expect(again == message, "a message is accepted in a form that is never written")
    }

    /// Parses a message, and writes it again.
    private static func written(_ message: Message) throws(MalformedMessage) -> Message {
        switch message.kind {
        case .hello: try Hello(parsing: message).message
        case .identify: try Identification(parsing: message).message
        case .request: try Request(parsing: message).message
        case .reply: try Response(parsing: message).message
        case .event, .part: throw MalformedMessage()
        }
    }
}
