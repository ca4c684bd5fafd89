// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainIPC
import KeychainStore
import KeychainTestSupport
import Testing

/// Messages that another implementation has written, by the article "Protocol of keychaind".
@Suite("Messages of another implementation")
struct MessageVectorTests {
    struct Vectors: Decodable {
        struct Case: Decodable {
            let name: String
            let packets: [Hexadecimal]
        }

        struct SignpostFile: Decodable {
            let store: Hexadecimal
            let file: Hexadecimal
        }

        let hello: [Hexadecimal]
        let identify: [Hexadecimal]
        let nonce: Hexadecimal
        let signpost: SignpostFile
        let grants: Hexadecimal
        let requests: [Case]
        let replies: [Case]
    }

    private let vectors: Vectors

    init() throws { vectors = try TestVectors.load("daemon-messages-v1.json") }

    private func message(_ packets: [Hexadecimal]) throws -> Message {
        var assembly = MessageAssembly(limit: WireProtocol.largestRequestByteCount)
        var message: Message?
        for packet in packets {
            try #require(message == nil)
            message = try assembly.add(packet.bytes[...])
        }
        return try #require(message)
    }

    private func packets(_ message: Message) -> [[UInt8]] {
        var packets: [[UInt8]] = []
        message.forEachPacket { packets.append($0) }
        return packets
    }

    @Test("The greetings")
    func greetings() throws {
        let hello = try Hello(parsing: message(vectors.hello))
        #expect(hello == Hello(nonce: vectors.nonce.bytes))
        #expect(packets(hello.message) == vectors.hello.map(\.bytes))
        let identification = try Identification(parsing: message(vectors.identify))
        #expect(
            identification
                == Identification(
                    nonce: vectors.nonce.bytes, applicationIdentifier: "app", accessGroups: ["shared", "app"], isAppClip: false,
                    storeID: Identifier128(vectors.signpost.store.bytes)))
        #expect(packets(identification.message) == vectors.identify.map(\.bytes))
    }

    @Test("The signpost in the place of a store")
    func signpost() throws {
        let bytes = vectors.signpost.file.bytes
        let signpost = try #require(Signpost(bytes))
        #expect(signpost.storeID == Identifier128(vectors.signpost.store.bytes))
        #expect(signpost.encoded == bytes)
        // As it is read, with the zeros behind the end of the file.
        #expect(Signpost(bytes + [0, 0]) == signpost)
        for count in bytes.indices { #expect(Signpost(Array(bytes.prefix(count))) == nil) }
        for index in bytes.indices where !(21..<53).contains(index) {
            var altered = bytes
            altered[index] ^= 1
            #expect(Signpost(altered) == nil)
        }
        #expect(Signpost(bytes + bytes) == nil)
    }

    @Test("The file of grants, of which no part alone is accepted")
    func grants() throws {
        let bytes = vectors.grants.bytes
        let grants = try #require(AccessGrants(bytes))
        #expect(grants.encoded == bytes)
        #expect(grants.all.map(\.program) == ["program:/usr/bin/evolution", "flatpak:org.example.App"])
        #expect(grants.all.map(\.group) == ["group:kc-demo", "program:/usr/local/bin/deploy"])
        #expect(grants.all.map(\.grantedAtSeconds) == [817_776_000, 817_776_001])
        for count in bytes.indices { #expect(AccessGrants(Array(bytes.prefix(count))) == nil) }
        #expect(AccessGrants(bytes + bytes) == nil)
        #expect(AccessGrants(Array("keychaind grants 2\nend\n".utf8)) == nil)
        #expect(AccessGrants(Array("keychaind grants 1\nend\n".utf8)) == AccessGrants())
    }

    @Test("Requests are read, and written as the same packets")
    func requests() throws {
        for vector in vectors.requests {
            let request = try Request(parsing: message(vector.packets))
            #expect(packets(request.message) == vector.packets.map(\.bytes), "\(vector.name)")
            #expect(Self.isExpected(request, vector.name), "\(vector.name)")
        }
    }

    @Test("Replies are read, and written as the same packets")
    func replies() throws {
        for vector in vectors.replies {
            let response = try Response(parsing: message(vector.packets))
            #expect(packets(response.message) == vector.packets.map(\.bytes), "\(vector.name)")
            #expect(Self.isExpected(response, vector.name), "\(vector.name)")
        }
    }

    private static func isExpected(_ request: Request, _ name: String) -> Bool {
        switch (name, request.call) {
        case ("a search", .copyMatching(let search)):
            search.query.attributes.text(.account) == "Skroob" && search.limit == 1 && search.includesSecrets && request.context == nil
                && !request.asksOwnAgentsOnly
        case ("a search with everything", .copyMatching(let search)):
            search.query.hostOrSubdomain == "example.com" && search.query.tombstones == .only && search.query.synchronizability == .either
                && search.query.reference?.itemClass == .internetPassword && search.attributes == .only(.account)
                && search.failsIfUnreadable
                && search.authentication.interaction == .skippingItems && search.authentication.prompt == "Ünlock"
                && request.context?.settings.reuseSeconds == 1.5 && request.context?.settings.isInteractionAllowed == false
                && request.asksOwnAgentsOnly
        case ("an addition", .add(let addition)):
            addition.secret == Data("12345".utf8) && addition.accessControl?.accessibility == .whenUnlocked
                && addition.accessControl?.constraint == .all([.any([.userPresence, .companion]), .applicationPassword])
        case ("a deletion", .delete(let deletion)): deletion.leavesTombstone == false && deletion.query.synchronizability == .local
        case ("an unlock", .unlock(_, let autoLock)): autoLock == .after(seconds: 900)
        case ("a lock", .lock(let extent)): extent == .everything
        case ("an adoption", .beginAdoption(let keys)):
            keys.keybag == Array("keybag".utf8) && keys.keybagGeneration == 3 && keys.deviceSecret.secret.byteCount == 32
        case ("rows", .insertRows(let rows)):
            rows.map(\.quarantineSeconds) == [nil, 2.5] && rows.map(\.row.header.constraints) == [nil, Array("constraints".utf8)]
                && rows[0].row.header.isSynchronizable && rows[0].row.header.classKeyGeneration == 7
                && rows[0].row.header.attributeDigests.map(\.attribute) == [.account]
        case ("a release", .beginRelease(let user)): user == 1_000
        case ("a different file", .setReleasedAside): true
        case ("an adoption that failed", .abandonAdoption): true
        case ("a watch", .watchSessions): true
        case ("a request for access", .requestAccess(let group)): group == "group:kc-demo"
        case ("all grants", .grants): true
        case ("a grant", .grant(let program, let group)): program == "program:/usr/bin/evolution" && group == "group:kc-demo"
        case ("a revocation", .revoke(let program, let group)): program == "flatpak:org.example.App" && group == "group:kc-demo"
        case ("a survey", .survey): true
        case ("places of an account", .places(let account, let services)): account == "Skroob" && services?.count == 2
        case ("all places of an account", .places(let account, let services)): account == "Skroob" && services == nil
        case ("a question about a process", .identify(let process)): process == 4_711
        case ("a program for fingers", .serveFingerprints), ("the state of biometry", .biometryStatus): true
        case ("a finger that does not match", .fingerprintAnswer(let answer)):
            answer.result == .noMatch && answer.mismatchCount == 3 && answer.reader.isEmpty && answer.fingers.isEmpty
        case ("a match", .fingerprintAnswer(let answer)):
            answer.result == .success && answer.mismatchCount == 1 && answer.reader == "Reader"
                && answer.fingers == ["left-thumb", "right-thumb"]
        case ("an agent", .showPrompts(let scope)): scope == .parentProcess
        case ("a passcode", .answer(.secret(let passcode))): passcode.secret.byteCount == 9
        case ("no prompt", .answer(.refused(let refusal))): refusal == .promptUnavailable("no terminal")
        case ("a locked session", .lockWithSession(let user)): user == 65_534
        case ("all sessions", .lockWithSession(let user)): user == nil
        case ("a login", .unlockAtLogin(let user, let password)): user == 65_534 && password.secret.byteCount == 5
        case ("a changed login password", .changePasscodeAtLogin(let user, let current, let new)):
            user == 65_534 && current.secret.byteCount == 5 && new.secret.byteCount == 8
        default: false
        }
    }

    private static let place = ItemPlace(
        accessGroup: "group:kc-demo", service: "Druidia", accessibility: .whenUnlocked, isSynchronizable: true)

    private static func isExpected(_ response: Response, _ name: String) -> Bool {
        switch (name, response.reply) {
        case ("done", .done): response.password == nil
        case ("an item", .items(let items)):
            items.count == 1 && items[0].secret == Data("12345".utf8) && items[0].attributes.text(.service) == "Druidia"
                && response.password == .entered
        case ("identified", .identified(let level, let groups)): level == .credential && groups == ["com.example.shared", "group:kc-demo"]
        case ("refused", .failure(let failure)): failure.status == .authFailed && failure.refusal == .wrongPasscode
        case ("not found", .failure(let failure)): failure.status == .itemNotFound && response.password == Response.ContextPassword.none
        case ("the last rows", .rows(let rows, let isLast)): rows.count == 1 && isLast
        case ("a prepared copy", .keptKeychain(let kept, let storeID)): kept == .prepared && storeID != nil
        case ("no keychain", .keptKeychain(let kept, let storeID)): kept == .nothing && storeID == nil
        case ("a question", .question(let question)):
            question
                == PresenceQuestion(
                    secret: .applicationPassword, requester: "/usr/bin/gh (process 7)", purpose: "read an item that you protected",
                    reason: "Ünlock", triesLeft: 2, timeoutSeconds: 60)
        case ("a question for a finger", .question(let question)):
            question
                == PresenceQuestion(
                    secret: .fingerprint, requester: "/usr/bin/gh (process 7)", purpose: "read an item that you protected",
                    timeoutSeconds: 60)
        case ("no biometry", .biometryStatus(let status)): status == BiometryStatus()
        case ("enrolled fingers", .biometryStatus(let status)): status.hasReader && status.domainState?.count == 32 && status.isExact
        case ("a verification", .fingerprintTask(let task)):
            task.kind == .verify && task.user == 65_534 && task.attemptCount == 3 && task.timeoutSeconds == 60
        case ("the end of a verification", .fingerprintTask(let task)):
            task.kind == .cancel && task.user == 65_534 && task.attemptCount == 0 && task.timeoutSeconds == 0
        case ("grants", .grants(let grants)):
            grants.map(\.program) == ["program:/usr/bin/evolution"] && grants.map(\.grantedAtSeconds) == [817_776_000]
        case ("a survey", .survey(let survey)):
            survey.accounts == [place: ["Skroob", ""]] && survey.internetPasswordCounts == [Array("com.example.shared".utf8): 2]
                && survey.unreadableCount == 3
        case ("places", .places(let places)): places == [place]
        case ("a path", .path(let path)): path == "/var/lib/keychain/1000.aside-1"
        case ("in three packets", .items(let items)): items.first?.secret?.count == 150_000
        default: false
        }
    }
}
