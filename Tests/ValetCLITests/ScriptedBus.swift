// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainSystem
import KeychainTestSupport

@testable import ValetCLI

/// A message bus with one client, whose answers a test chooses.
///
/// It does what no real service does on request: it stays silent, sends damaged messages, and completes prompts at any moment.
final class ScriptedBus: Sendable {
    enum Answer: Sendable {
        case reply([DBusValue], String)
        case error(String)
        case signal(path: String, member: String, [DBusValue], String)
        case raw([UInt8])
        /// Ends the connection.
        case end
    }

    let address: LocalSocket.Address
    private let directory: TemporaryDirectory
    private let listener: Int32

    /// Starts a thread that accepts one connection, and answers each call with what `answers` returns; with nothing if that is empty.
    ///
    /// Without an answer to the authentication the bus stays silent.
    init(authentication: String? = "OK 0123456789abcdef\r\n", _ answers: @escaping @Sendable (DBusMessage) -> [Answer]) throws {
        directory = try TemporaryDirectory()
        address = .path(directory.path + "/bus")
        listener = try Self.listen(directory.path + "/bus")
        Thread.detachNewThread { [listener] in
            let connection = accept(listener, nil, nil)
            defer { close(connection) }
            Self.serve(connection, authentication, answers)
        }
    }

    deinit {
        // Ends a thread that waits for a connection.
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private static func listen(_ path: String) throws -> Int32 {
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // The array ends in zeros; an address may be seen as the general kind.
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let isBound = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(listener, address, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        guard isBound, Glibc.listen(listener, 1) == 0 else { throw Errno(rawValue: errno) }
        return listener
    }

    private static func serve(
        _ connection: Int32, _ authentication: String?, _ answers: (DBusMessage) -> [Answer]
    ) {
        var input: [UInt8] = []
        func read(_ byteCount: Int) -> [UInt8]? {
            while input.count < byteCount {
                guard let more = DescriptorReader.read(connection) else { return nil }
                input += more
            }
            defer { input.removeFirst(byteCount) }
            return Array(input.prefix(byteCount))
        }
        func readLine() -> Bool {
            while let byte = read(1) { if byte == [UInt8(ascii: "\n")] { return true } }
            return false
        }
        func send(_ bytes: [UInt8]) {
            // The client may have gone. The buffer is used during the call only.
            _ = unsafe Glibc.send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }
        guard readLine() else { return }
        if let authentication { send(Array(authentication.utf8)) }
        guard readLine() else { return }
        while let prefix = read(DBusMessage.prefixByteCount), let byteCount = try? DBusMessage.byteCount(prefix: prefix),
            let rest = read(byteCount - prefix.count), let call = try? DBusMessage(decoding: prefix, rest)
        {
            for answer in answers(call) {
                switch answer {
                case .reply(let values, let signature): send(Self.reply(to: call, values, signature).encoded)
                case .error(let name):
                    send(
                        DBusMessage(
                            .error, serial: 1,
                            [.replySerial: .number(UInt64(call.serial)), .errorName: .text(name)]
                        ).encoded)
                case .signal(let path, let member, let values, let signature):
                    send(
                        DBusMessage(
                            .signal, serial: 1, [.path: .text(path), .interface: .text("a.b"), .member: .text(member)], body: values,
                            signature: signature
                        ).encoded)
                case .raw(let bytes): send(bytes)
                case .end: return
                }
            }
        }
    }

    static func reply(to call: DBusMessage, _ values: [DBusValue], _ signature: String) -> DBusMessage {
        DBusMessage(.reply, serial: 1, [.replySerial: .number(UInt64(call.serial))], body: values, signature: signature)
    }
}

/// A Secret Service with one collection, as the answers of a bus.
struct ScriptedSecretService: Sendable {
    struct Item: Sendable {
        var label: String
        var attributes: [String: String] = [:]
        var secret: [UInt8]
        var isLocked = false
    }

    var items: [Item]
    /// Answers instead of the usual ones, by the member that is called.
    var exceptions: [String: [ScriptedBus.Answer]] = [:]

    private static let collection = "/org/freedesktop/secrets/collection/c"

    /// Returns the answers to a call; `isUnlocked` tells whether everything was unlocked meanwhile.
    func answers(to call: DBusMessage, isUnlocked: Bool = false) -> [ScriptedBus.Answer] {
        let member = call.text(.member) ?? ""
        if let exception = exceptions[member] { return exception }
        switch (member, call.body.first?.text) {
        case ("Hello", _): return [.reply([.text(":1.1")], "s")]
        case ("OpenSession", _): return [.reply([.variant(signature: "s", .text("")), .text("/s")], "vo")]
        case ("GetAll", "org.freedesktop.Secret.Service"):
            return [Self.properties(["Collections": .variant(signature: "ao", .list([.text(Self.collection)]))])]
        case ("GetAll", "org.freedesktop.Secret.Collection"):
            let paths = items.indices.map { DBusValue.text("\(Self.collection)/\($0)") }
            return [
                Self.properties([
                    "Label": .variant(signature: "s", .text("Druidia")), "Locked": .variant(signature: "b", .number(0)),
                    "Items": .variant(signature: "ao", .list(paths)),
                ])
            ]
        case ("GetAll", "org.freedesktop.Secret.Item"):
            guard let item = item(call) else { return [.error("org.freedesktop.Secret.Error.NoSuchObject")] }
            let attributes = item.attributes.map { DBusValue.list([.text($0.key), .text($0.value)]) }
            return [
                Self.properties([
                    "Label": .variant(signature: "s", .text(item.label)),
                    "Locked": .variant(signature: "b", .number(item.isLocked && !isUnlocked ? 1 : 0)),
                    "Attributes": .variant(signature: "a{ss}", .list(attributes)), "Created": .variant(signature: "t", .number(1)),
                ])
            ]
        case ("GetSecret", _):
            guard let item = item(call) else { return [.error("org.freedesktop.Secret.Error.NoSuchObject")] }
            return [.reply([Self.secret(item.secret)], "(oayays)")]
        case ("Unlock", _): return [.reply([.list([]), .text("/prompt")], "aoo")]
        default: return [.reply([], "")]
        }
    }

    static func secret(_ bytes: [UInt8]) -> DBusValue {
        .list([.text("/s"), .bytes([]), .bytes(bytes), .text("application/octet-stream")])
    }

    private func item(_ call: DBusMessage) -> Item? {
        call.text(.path).map(SecretService.identifier).flatMap(Int.init).flatMap { items.indices.contains($0) ? items[$0] : nil }
    }

    private static func properties(_ values: [String: DBusValue]) -> ScriptedBus.Answer {
        .reply([.list(values.map { .list([.text($0.key), $0.value]) })], "a{sv}")
    }
}
