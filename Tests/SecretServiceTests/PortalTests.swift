// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import Contracts
import Foundation
import Glibc
import KeychainTestSupport
import Testing

@testable import SecretService
@testable import ValetCLI

@Suite("The portal for secrets of sandboxed applications", .blocking, .requiresMessageBus)
struct PortalTests {
    private static let application = "org.example.Mail"

    @Test("An application gets 64 bytes that no other one has, always the same, also after a restart")
    func secrets() throws {
        let desktop = try Desktop()
        let frontEnd = try PortalFrontEnd(desktop.environment)
        let secret = try frontEnd.secret(of: Self.application)
        #expect(secret.count == 64 && Set(secret).count > 16)
        #expect(try frontEnd.secret(of: Self.application) == secret)
        #expect(try frontEnd.secret(of: "org.example.Other") != secret)
        try desktop.restartBridge()
        #expect(try frontEnd.secret(of: Self.application) == secret)
        // GNOME Keyring's description of its portal names the keyring, which is this program now.
        #expect(try frontEnd.secret(of: Self.application, backEnd: "org.freedesktop.secrets") == secret)
    }

    @Test("The Secret Service shows nothing of it")
    func invisible() throws {
        let desktop = try Desktop()
        let frontEnd = try PortalFrontEnd(desktop.environment)
        let secret = try frontEnd.secret(of: Self.application)
        try desktop.restartBridge()
        let client = try desktop.client()
        #expect(try client.search([:]) == ([], []) && client.search(["app_id": Self.application]) == ([], []))
        for collection in try client.property("Collections", of: Desktop.root, .service).texts ?? [] {
            #expect(try client.property("Items", of: collection, .collection).texts == [])
        }
        _ = try client.error(Desktop.login, .collection, "Delete")
        #expect(try frontEnd.secret(of: Self.application) == secret)
    }

    @Test("Programs without a name, and names that no application has, get nothing", arguments: ["", String(repeating: "a", count: 256)])
    func unnamed(_ application: String) throws {
        let desktop = try Desktop()
        #expect(try PortalFrontEnd(desktop.environment).answer(for: application) == .response(2))
        // A keychain that nothing was stored in has no table.
        #expect((try? RawDatabase(desktop.home + "/keychain.db").integer("SELECT count(*) FROM items")) == nil)
    }

    @Test("Only the program that has the name of xdg-desktop-portal is answered")
    func otherCaller() throws {
        let desktop = try Desktop()
        let other = try PortalFrontEnd(desktop.environment, isFrontEnd: false)
        let refused = PortalFrontEnd.Answer.error("org.freedesktop.DBus.Error.AccessDenied")
        #expect(try other.answer(for: Self.application) == refused)
        let frontEnd = try PortalFrontEnd(desktop.environment)
        #expect(try other.answer(for: Self.application) == refused)
        #expect(try frontEnd.answer(for: Self.application) == .response(0))
    }

    @Test("A secret that cannot be read is not replaced")
    func unreadable() throws {
        let desktop = try Desktop()
        let frontEnd = try PortalFrontEnd(desktop.environment)
        _ = try frontEnd.secret(of: Self.application)
        let database = try RawDatabase(desktop.home + "/keychain.db")
        try database.execute("UPDATE items SET sealed_secret = zeroblob(length(sealed_secret))")
        #expect(try frontEnd.answer(for: Self.application) == .response(2))
        #expect(try database.integer("SELECT count(*) FROM items WHERE sealed_secret = zeroblob(length(sealed_secret))") == 1)
        #expect(try database.integer("SELECT count(*) FROM items") == 1)
    }

    // MARK: Descriptors

    @Test("oo7: the secret is written to any kind of descriptor (oo7 04c44e1)", arguments: ["pipe", "stream", "packets", "file"])
    func descriptors(_ kind: String) throws {
        let desktop = try Desktop()
        let frontEnd = try PortalFrontEnd(desktop.environment)
        let secret = try frontEnd.secret(of: Self.application)
        let ends = try Ends(kind, in: desktop.home)
        #expect(try frontEnd.answer(to: try frontEnd.begin(Self.application, writingTo: ends.writing)) == .response(0))
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = unsafe read(ends.reading, &bytes, bytes.count)
        #expect(count == 64 && Array(bytes.prefix(64)) == secret)
        // The application's own descriptor blocks as before.
        #expect(fcntl(ends.writing, F_GETFL) & O_NONBLOCK == 0)
    }

    @Test("A full pipe that nothing reads ends its own request only, and one that is read gets the secret")
    func fullPipe() throws {
        let desktop = try Desktop()
        let frontEnd = try PortalFrontEnd(desktop.environment)
        for kind in ["pipe", "stream"] {
            let ends = try Ends(kind, in: desktop.home)
            let filled = try ends.fill()
            let full = try frontEnd.begin(Self.application, writingTo: ends.writing)
            #expect(try frontEnd.answer(for: Self.application) == .response(0))
            #expect(full.answer == nil)
            _ = try desktop.client().createItem(["a": "b"], "secret")
            #expect(try frontEnd.answer(to: full) == .response(2))
            let second = try frontEnd.begin(Self.application, writingTo: ends.writing)
            var bytes = [UInt8](repeating: 0, count: filled)
            var count = 0
            while count < filled { count += unsafe read(ends.reading, &bytes, filled - count) }
            #expect(try frontEnd.answer(to: second) == .response(0))
        }
    }

    @Test("A pipe without a reader, and a descriptor that cannot be written to, are failures, and the portal goes on")
    func unusableDescriptors() throws {
        let desktop = try Desktop()
        let frontEnd = try PortalFrontEnd(desktop.environment)
        for kind in ["pipe", "stream"] {
            let ends = try Ends(kind, in: desktop.home)
            ends.closeReading()
            // A child that another test starts at this moment has it until it executes its program.
            #expect(waitUntil { ends.hasNoReader })
            #expect(try frontEnd.answer(to: try frontEnd.begin(Self.application, writingTo: ends.writing)) == .response(2))
        }
        // A sandbox may have a file, or one end of a pipe, for reading only.
        let file = try Ends("file", in: desktop.home)
        #expect(try frontEnd.answer(to: try frontEnd.begin(Self.application, writingTo: file.reading)) == .response(2))
        let pipe = try Ends("pipe", in: desktop.home)
        #expect(try frontEnd.answer(to: try frontEnd.begin(Self.application, writingTo: pipe.reading)) == .response(2))
        var status = stat()
        #expect(unsafe fstat(file.reading, &status) == 0 && status.st_size == 0)
        #expect(try frontEnd.answer(for: Self.application) == .response(0))
    }

    // MARK: The lock

    @Test("oo7: while the keychain is locked, the application waits for the prompt (oo7 235)")
    func locked() throws {
        let pinentry = try pinentry(Desktop.passcode)
        let desktop = try Desktop(hasPasscode: true, pinentry: pinentry.path)
        let frontEnd = try PortalFrontEnd(desktop.environment)
        let secret = try frontEnd.secret(of: Self.application)
        #expect(try desktop.client().property("Locked", of: Desktop.login, .collection).boolean == false)
        #expect(try frontEnd.secret(of: Self.application) == secret)
    }

    @Test("A prompt that fails cancels the request, and no secret is made")
    func refusedPrompt() throws {
        let desktop = try Desktop(hasPasscode: true)
        let frontEnd = try PortalFrontEnd(desktop.environment)
        let count = { try RawDatabase(desktop.home + "/keychain.db").integer("SELECT count(*) FROM items") }
        let before = try count()
        #expect(try frontEnd.answer(for: Self.application) == .response(1))
        #expect(try count() == before)
    }

    @Test("The front end ends a request, and its prompt with it; no other program can")
    func closedRequest() throws {
        let pinentry = try ScriptedPinentryProgram(["say OK", "until GETPIN"])
        let desktop = try Desktop(hasPasscode: true, pinentry: pinentry.path)
        let frontEnd = try PortalFrontEnd(desktop.environment)
        let pipe = Pipe()
        let call = try frontEnd.begin(Self.application, writingTo: pipe.fileHandleForWriting.fileDescriptor)
        #expect(waitUntil { pinentry.log.contains("GETPIN") })
        #expect(
            try frontEnd.answer(for: Self.application, handle: call.handle) == .error("org.freedesktop.DBus.Error.InvalidArgs"))
        let other = try PortalFrontEnd(desktop.environment, isFrontEnd: false)
        #expect(try other.close(call.handle) == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(try frontEnd.close(call.handle) == nil)
        #expect(try frontEnd.answer(to: call) == .response(1))
        #expect(try frontEnd.close(call.handle) == "org.freedesktop.DBus.Error.UnknownMethod")
        // The next one has a dialog of its own.
        let second = try frontEnd.begin(Self.application, writingTo: pipe.fileHandleForWriting.fileDescriptor)
        #expect(try frontEnd.close(second.handle) == nil && frontEnd.answer(to: second) == .response(1))
    }

    @Test("An application that asks in a loop reaches a limit, and others do not")
    func limit() throws {
        let pinentry = try ScriptedPinentryProgram(["say OK", "until GETPIN"])
        let desktop = try Desktop(hasPasscode: true, pinentry: pinentry.path)
        let frontEnd = try PortalFrontEnd(desktop.environment)
        let pipe = Pipe()
        let descriptor = pipe.fileHandleForWriting.fileDescriptor
        let calls = try (0..<SecretPortal.requestLimitForApplication).map { _ in
            try frontEnd.begin(Self.application, writingTo: descriptor)
        }
        #expect(try frontEnd.answer(for: Self.application) == .error("org.freedesktop.DBus.Error.LimitsExceeded"))
        let other = try frontEnd.begin("org.example.Other", writingTo: descriptor)
        for call in calls + [other] {
            #expect(try frontEnd.close(call.handle) == nil && frontEnd.answer(to: call) == .response(1))
        }
    }

    @Test("A front end that leaves the bus takes its requests with it, and the next one is answered")
    func lostFrontEnd() throws {
        let pinentry = try ScriptedPinentryProgram(["say OK", "until GETPIN"])
        let desktop = try Desktop(hasPasscode: true, pinentry: pinentry.path)
        var frontEnd: PortalFrontEnd? = try PortalFrontEnd(desktop.environment)
        let pipe = Pipe()
        let call = try #require(try frontEnd?.begin(Self.application, writingTo: pipe.fileHandleForWriting.fileDescriptor))
        #expect(waitUntil { pinentry.log.contains("GETPIN") })
        frontEnd = nil
        let next = try PortalFrontEnd(desktop.environment)
        #expect(waitUntil { (try? next.close(call.handle)) == "org.freedesktop.DBus.Error.UnknownMethod" })
        try Desktop.keychain(home: desktop.home).unlock(with: Desktop.passcode)
        #expect(try next.secret(of: Self.application).count == 64)
    }
}

/// The two ends of a channel, or of a file.
private final class Ends {
    private(set) var reading: Int32 = -1
    let writing: Int32

    init(_ kind: String, in directory: String) throws {
        var pair: [Int32] = [-1, -1]
        switch kind {
        case "pipe": try #require(unsafe pipe(&pair) == 0)
        case "stream": try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        case "packets":
            try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &pair) == 0)
        default:
            let path = directory + "/file-of-application"
            pair = unsafe [open(path, O_RDONLY | O_CREAT, 0o600), open(path, O_WRONLY)]
        }
        try #require(pair[0] >= 0 && pair[1] >= 0)
        for end in pair { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (reading, writing) = (pair[0], pair[1])
    }

    deinit {
        closeReading()
        close(writing)
    }

    var hasNoReader: Bool {
        var request = pollfd(fd: writing, events: 0, revents: 0)
        // One request, which is ours.
        return unsafe poll(&request, 1, 0) > 0 && request.revents & Int16(POLLERR | POLLHUP) != 0
    }

    func closeReading() {
        if reading >= 0 { close(reading) }
        reading = -1
    }

    /// Writes until there is no room, and returns how many bytes.
    func fill() throws -> Int {
        _ = fcntl(writing, F_SETFL, O_NONBLOCK)
        defer { _ = fcntl(writing, F_SETFL, 0) }
        let chunk = [UInt8](repeating: 0, count: 4_096)
        var total = 0
        while true {
            let count = unsafe write(writing, chunk, chunk.count)
            guard count > 0 else { return total }
            total += count
        }
    }
}
#endif
