// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import KeychainCore
import KeychainIPC
import KeychainTestSupport
import Testing

@Suite("Messages between a program and keychaind")
struct MessageTests {
    @Test("A request is read as it was written", arguments: Samples.requests.indices)
    func requests(index: Int) throws {
        let message = Samples.requests[index].message
        #expect(try Request(parsing: message).message == message)
    }

    @Test("A reply is read as it was written", arguments: Samples.replies.indices)
    func replies(index: Int) throws {
        let message = Response(Samples.replies[index], password: .entered).message
        #expect(try Response(parsing: message).message == message)
    }

    @Test("The greetings are read as they were written")
    func greetings() throws {
        let hello = Hello(versions: 1...3, nonce: Array(1...16))
        #expect(try Hello(parsing: hello.message) == hello)
        let identification = Identification(
            nonce: Array(1...16), applicationIdentifier: "com.example.app", accessGroups: ["shared", "com.example.app"], isAppClip: true)
        #expect(try Identification(parsing: identification.message) == identification)
    }

    @Test("A message that is cut off, or has bytes after its end, is refused")
    func otherLengths() {
        for message in Samples.messages {
            for count in message.body.indices {
                #expect(throws: MalformedMessage.self) { try message.with(body: Array(message.body.prefix(count))).parse() }
            }
            #expect(throws: MalformedMessage.self) { try message.with(body: message.body + [0]).parse() }
        }
    }

    /// The encoding of a value is unique, so no change of a bit is ignored.
    @Test("A message with a changed bit is refused, or is another message")
    func changedBits() throws {
        for message in Samples.messages {
            for position in message.body.indices {
                for bit in 0..<8 {
                    var body = message.body
                    body[position] ^= 1 << bit
                    let changed = message.with(body: body)
                    do throws(MalformedMessage) { #expect(try changed.parse() == changed) } catch {}
                }
            }
        }
    }

    @Test(
        "An operation without a meaning is refused",
        arguments: [0, 5, 15, 24, 35, 49, 79, 82, 95, 98, 111, 115, 127, 132, 143, 146, 150, UInt16.max])
    func unknownOperation(operation: UInt16) {
        #expect(throws: MalformedMessage.self) { try Request(parsing: Message(.request, operation: operation, body: [0, 0])) }
    }

    @Test("A constraint that is nested too deeply, or has too many branches, is refused")
    func hostileConstraints() {
        let deep: [UInt8] = Array(repeating: [16, 1, 0, 0, 0] as [UInt8], count: 5).flatMap(\.self) + [1]
        let wide: [UInt8] = [17, 17, 0, 0, 0] + Array(repeating: 1, count: 17)
        let endless: [UInt8] = [17, 255, 255, 255, 255]
        for constraint in [deep, wide, endless] {
            #expect(throws: MalformedMessage.self) { try Request(parsing: Message(.request, operation: 32, body: [0, 0] + constraint)) }
        }
    }

    @Test("A list whose count is a lie costs no memory")
    func hostileCount() {
        let removal = Message(.reply, body: [0, 3, 255, 255, 255, 255])
        #expect(throws: MalformedMessage.self) { try Response(parsing: removal) }
    }
}

@Suite("Packets of a message")
struct PacketTests {
    private static let room = WireProtocol.largestPacketByteCount - WireProtocol.headerByteCount

    private static func packets(_ message: Message) -> [[UInt8]] {
        var packets: [[UInt8]] = []
        message.forEachPacket { packets.append($0) }
        return packets
    }

    @Test(
        "A message arrives in as few packets as possible",
        arguments: [(0, 1), (1, 1), (room, 1), (room + 1, 2), (2 * room, 2), (3 * room + 7, 4)])
    func packets(byteCount: Int, packetCount: Int) throws {
        let message = Message(.request, operation: 2, body: (0..<byteCount).map { UInt8(truncatingIfNeeded: $0) })
        let packets = Self.packets(message)
        #expect(packets.count == packetCount)
        #expect(packets.allSatisfy { $0.count <= WireProtocol.largestPacketByteCount })
        var assembly = MessageAssembly(limit: byteCount)
        var received: [Message] = []
        for packet in packets {
            if let whole = try assembly.add(packet[...]) { received.append(whole) }
            #expect(assembly.isIncomplete == received.isEmpty)
        }
        #expect(received == [message])
    }

    @Test("A message that is larger than the limit is refused with its first packet")
    func limit() throws {
        let packets = Self.packets(Message(.request, operation: 1, body: Array(repeating: 1, count: 100)))
        var assembly = MessageAssembly(limit: 99)
        #expect(throws: MalformedMessage.self) { try assembly.add(packets[0][...]) }
    }

    @Test("A packet that does not follow the one before is refused")
    func disorder() throws {
        let packets = Self.packets(Message(.request, operation: 1, body: Array(repeating: 1, count: 3 * Self.room)))
        let orders: [[Int]] = [[1], [0, 0], [0, 2], [0, 1, 1]]
        for order in orders {
            var assembly = MessageAssembly(limit: 4 * Self.room)
            for index in order.dropLast() { #expect(try assembly.add(packets[index][...]) == nil) }
            #expect(throws: MalformedMessage.self) { try assembly.add(packets[order[order.count - 1]][...]) }
        }
    }

    @Test("A packet with less or more of the body than its header says is refused", arguments: [-1, 1])
    func otherByteCount(difference: Int) {
        let packet = Self.packets(Message(.event, body: [1, 2, 3]))[0]
        var assembly = MessageAssembly(limit: 10)
        let changed = difference < 0 ? packet.dropLast() : (packet + [4])[...]
        #expect(throws: MalformedMessage.self) { try assembly.add(changed) }
    }

    @Test("A header of another version, or of an unknown kind, is refused")
    func headers() {
        for packet in [[2, 3, 1, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0, 0, 0], [1, 7, 1, 0, 0, 0, 0, 0], [1, 3, 1], []] as [[UInt8]] {
            var assembly = MessageAssembly(limit: 10)
            #expect(throws: MalformedMessage.self) { try assembly.add(packet[...]) }
        }
    }
}

extension Message {
    fileprivate func with(body: [UInt8]) -> Message { Message(kind, operation: operation, body: body) }

    /// Parses the message, and writes it again.
    fileprivate func parse() throws(MalformedMessage) -> Message {
        switch kind {
        case .hello: try Hello(parsing: self).message
        case .identify: try Identification(parsing: self).message
        case .request: try Request(parsing: self).message
        default: try Response(parsing: self).message
        }
    }
}

/// One message of each kind at least, with all fields present and absent.
enum Samples {
    static let messages =
        requests.map(\.message) + replies.map { Response($0).message } + [
            Hello(nonce: Array(1...16)).message,
            Identification(nonce: Array(1...16), applicationIdentifier: "app", accessGroups: ["a", "b"], isAppClip: false).message,
        ]

    static let requests: [Request] =
        (calls + fingerprintAnswers).map { Request($0) } + [
            Request(calls[0], context: ContextReference(token: identifier, settings: AuthenticationContext.Settings(), password: .none)),
            Request(calls[0], context: ContextReference(token: identifier, settings: AuthenticationContext.Settings(), password: .kept)),
            Request(calls[1], context: ContextReference(token: identifier, settings: settings, password: .given(secret("open sesame")))),
            Request(calls[1], asksOwnAgentsOnly: true),
        ]

    private static let identifier = Identifier128(high: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10)

    private static let settings: AuthenticationContext.Settings = {
        var settings = AuthenticationContext.Settings()
        settings.isInteractionAllowed = false
        settings.reason = "because"
        settings.cancelTitle = "no"
        settings.reuseSeconds = 1.5
        return settings
    }()

    private static func secret(_ text: String) -> SharedSecretBytes {
        do throws(KeychainFailure) {
            return SharedSecretBytes(try unsafe SecretBytes(byteCount: text.utf8.count) { unsafe $0.copyBytes(from: text.utf8) })
        } catch {
            // The test cannot go on without its sample.
            preconditionFailure("no memory for a test")
        }
    }

    private static let attributes = ItemAttributes([
        .account: .string("account"), .service: .data(Data([0, 255])), .creationDate: .date(-1.25), .synchronizable: .number(1),
    ])

    private static let constraint = AccessControl.Constraint.all([
        .any([.userPresence, .devicePasscode, .biometryAny, .biometryCurrentSet, .companion]), .applicationPassword,
    ])

    private static let reference = PersistentReference(itemClass: .internetPassword, id: identifier)
    private static let authentication = Authentication(interaction: .skippingItems, prompt: "Ünlock")

    private static let calls: [Call] = [
        .add(AddRequest(itemClass: .genericPassword)),
        .add(
            AddRequest(
                itemClass: .internetPassword, attributes: attributes, secret: Data([1, 2, 3]),
                accessControl: AccessControl(.whenUnlocked, constraint: constraint, allowsPrivateKeyUsageOnly: true),
                authentication: authentication)),
        .copyMatching(MatchRequest(query: ItemQuery(itemClass: .genericPassword))),
        .copyMatching(
            MatchRequest(
                query: ItemQuery(
                    itemClass: .internetPassword, reference: reference, attributes: attributes, synchronizability: .either,
                    tombstones: .only,
                    hostOrSubdomain: "example.com"),
                limit: nil, includesSecrets: true, attributes: .only(.account), failsIfUnreadable: true,
                authentication: Authentication(interaction: .forbidden))),
        .update(UpdateRequest(query: ItemQuery(itemClass: .genericPassword, synchronizability: .synchronizable))),
        .update(
            UpdateRequest(
                query: ItemQuery(itemClass: .genericPassword), changes: attributes, secret: Data(),
                accessControl: AccessControl(.always), accessibility: .afterFirstUnlock, leavesTombstone: true)),
        .delete(DeleteRequest(query: ItemQuery(itemClass: .genericPassword), leavesTombstone: false)),
        .sessionStatus, .unlock(secret("swordfish"), .never), .lock(.everything), .lock(.whenUnlocked), .setAutoLock(.after(seconds: 60)),
        .setPasscode(secret("swordfish"), .standard),
        .changePasscode(from: secret("old"), to: secret("new"), rotatesKeys: true, .never),
        .passcodeRemoval(secret("swordfish")), .removePasscode(secret("swordfish"), removal), .requireCanAuthenticate(constraint),
        .authenticate(.devicePasscode, .whenPasscodeSetThisDeviceOnly, authentication), .authenticate(.userPresence, nil, authentication),
        .observeChanges, .forgetContext(identifier), .unlockAtLogin(user: 1_000, secret("swordfish")),
        .changePasscodeAtLogin(user: 1_000, from: secret("old"), to: secret("new")),
        .watchSessions, .lockWithSession(user: 1_000), .lockWithSession(user: nil), .agentProgram, .showPrompts(.allProcesses),
        .showPrompts(.parentProcess), .answer(.secret(secret("swordfish"))), .answer(.empty), .answer(.refused(.promptUnavailable("why"))),
        .answer(.refused(.canceled)), .answer(.refused(.timedOut)), .answer(.refused(.failed("why"))),
        .requestAccess(group: "group:example"), .grants, .grant(program: "program:/usr/bin/a", group: "group:example"),
        .revoke(program: "snap:a", group: "b"), .survey, .places(account: "a", services: nil), .places(account: "", services: ["a", ""]),
        .identify(process: 1), .identify(process: .max),
        .serveFingerprints, .biometryStatus,
    ]

    private static let fingerprintAnswers: [Call] = FingerprintAnswer.Result.allCases.map {
        .fingerprintAnswer(
            FingerprintAnswer(nonce: identifier, result: $0, mismatchCount: 2, reader: "a reader", fingers: ["left-thumb", ""]))
    }

    private static let survey = {
        var survey = ItemSurvey()
        for group in ["a", "b"] {
            for service in ["", "service"] {
                survey.accounts[
                    ItemPlace(accessGroup: group, service: service, accessibility: .always, isSynchronizable: group == "a")] = [service]
            }
            survey.internetPasswordCounts[Array(group.utf8)] = 1
        }
        survey.unreadableCount = 2
        return survey
    }()

    private static let grants = ["program:/usr/bin/a", "flatpak:org.example.App"].compactMap {
        try? AccessGrant(program: $0, group: "group:example", grantedAtSeconds: 1)
    }

    private static let removal = PasscodeRemoval(items: [
        PasscodeRemoval.Item(id: identifier, name: PasscodeRemoval.Name(service: "service", account: "account")),
        PasscodeRemoval.Item(id: identifier, name: nil),
    ])

    static let replies: [Reply] =
        [
            .done, .items([]), .passcodeRemoval(removal), .identified(.credential, accessGroups: ["group:keychain-example", "shared"]),
            .items([
                KeychainItem(reference: reference, attributes: attributes, accessControl: AccessControl(.always), secret: nil),
                KeychainItem(
                    reference: reference, attributes: ItemAttributes(),
                    accessControl: AccessControl(.whenUnlocked, constraint: .userPresence), secret: Data([9])),
            ]),
            .question(PresenceQuestion(secret: .passcode, requester: "a program", purpose: "read")),
            .question(
                PresenceQuestion(
                    secret: .newApplicationPassword, requester: "a program", purpose: "store", reason: "Ünlock", cancelTitle: "No",
                    triesLeft: 2, timeoutSeconds: 9)),
            .question(PresenceQuestion(secret: .fingerprint, requester: "a program", purpose: "read")),
            .question(PresenceQuestion(secret: .passcodeOrFingerprint, requester: "a program", purpose: "read", triesLeft: 1)),
            .biometryStatus(BiometryStatus()), .biometryStatus(BiometryStatus(hasReader: true, domainState: [1, 2], isExact: true)),
            .fingerprintTask(FingerprintTask(nonce: identifier, kind: .inspect, user: 1_000)),
            .fingerprintTask(FingerprintTask(nonce: identifier, kind: .verify, user: 1_000, attemptCount: 3, timeoutSeconds: 60)),
            .fingerprintTask(FingerprintTask(nonce: identifier, kind: .cancel, user: 1_000)),
            .grants([]), .grants(grants), .survey(ItemSurvey()), .survey(survey), .places(Array(survey.accounts.keys)),
            .sessionStatus(SessionStatus(state: .neverUnlocked, isPasscodeSet: true, holder: .kernelKeyring, autoLock: nil)),
            .sessionStatus(SessionStatus(state: .locked, isPasscodeSet: true, holder: .kernelKeyringOfUserNamespace, autoLock: .never)),
            .sessionStatus(SessionStatus(state: .unlocked, isPasscodeSet: false, holder: .processMemory, autoLock: .standard)),
        ] + failures.map { .failure($0) }

    private static let failures: [KeychainFailure] =
        causes.map { KeychainFailure(.notAvailable, "a reason", path: "/a/path", subject: .store, cause: $0, isDamage: true) }
        + remedies.map { KeychainFailure(.inputOutput, "", remedy: $0) }
        + refusals.map { KeychainFailure(.authFailed, "no", refusal: $0) }

    private static let causes: [KeychainFailure.Cause] =
        [
            .diskFull, .quota, .busy, .outcomeUnknown, .otherAccessibility, .newerVersion, .missing, .empty, .symbolicLink, .notRegularFile,
            .hardLinks,
            .mountPoint, .wrongOwner, .accessibleToOthers, .networkFileSystem(name: "nfs"), .unknownFileSystem,
            .temporaryFileSystem(name: "tmpfs"), .foreignFile, .otherStore, .environmentVariable("HOME"), .invalidEntry("entry"),
            .unsupportedVersion, .malformed, .damaged, .costRefused, .isKeychainFile, .incompleteBackup, .mistyped, .locked,
            .timedOut(milliseconds: 5), .system(errno: 5), .sqlite(code: 11),
        ] + problems.map { .unexpectedState($0) }

    private static let problems: [StateProblem] = [
        .unauthentic, .rolledBack(missingChangeCount: 1), .superseded, .logRemoved(missingChangeCount: 2), .diverged,
        .rowsChanged(count: 3, expectedCount: 4), .mixed, .keybagReplaced, .keybagGenerationAltered, .schemaAltered,
    ]

    private static let remedies: [KeychainRemedy] = [
        .makeRoomForKeys, .lockAgain, .correctPolicy, .useNewerVersion, .writeElsewhere, .acceptCost, .closeElsewhere, .repair,
        .acceptContent, .saveReadable, .saveRefused, .restoreCopy, .useRecoveryKey, .reachTPM, .useOneVolume,
    ]

    private static let refusals: [AuthenticationRefusal] = [
        .passcodeNotSet, .wrongPasscode, .wrongPassword, .wrongRecoveryKey, .notSatisfied, .lockedOut(seconds: nil), .lockedOut(seconds: 9),
        .timedOut, .biometryNotAvailable, .notInteractive, .invalidContext,
        .biometryNotEnrolled, .biometryLockedOut, .biometryNotRecognized,
    ]
}
