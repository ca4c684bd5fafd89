// SPDX-License-Identifier: Apache-2.0
import CKeychainTestShims
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainSystem
import KeychainTestSupport

@testable import keychaind

/// keychaind's code in this process, for a keychain that the test makes.
final class InProcessService: Sendable {
    let path: String
    private let service: Service
    private let directory: TemporaryDirectory

    init(_ keychain: LocalKeychain, registrations: String = "/nonexistent") throws {
        directory = try TemporaryDirectory(inMemory: true)
        path = directory.path + "/socket"
        let parts = ServiceParts(registrations: RegistrationDirectory(registrations)) { _ in keychain }
        service = try Service(parts, PacketListener(at: path))
        guard BackgroundThread.start({ [service] in try? service.run() }) else { throw NoThread() }
    }

    private struct NoThread: Error {}

    deinit { service.end() }

    /// A client, which keeps the service running.
    func client(_ identifier: String = "app") -> DaemonKeychain {
        let connector = DaemonClient.connector(toSocketAt: path)
        return DaemonKeychain(
            DaemonClient(entitlements: Entitlements(applicationIdentifier: identifier)) { [self] deadline throws(KeychainFailure) in
                try withExtendedLifetime(self) { () throws(KeychainFailure) in try connector(deadline) }
            })
    }
}

/// The program keychaind as a child process, with directories of its own.
final class SpawnedService {
    let directory: TemporaryDirectory
    private(set) var process: ChildProcess

    var path: String { directory.path + "/socket" }
    var registrations: String { directory.path + "/entitlements" }

    init() throws {
        directory = try TemporaryDirectory()
        process = try Self.start(in: directory.path)
    }

    func client(_ identifier: String = "app") -> DaemonKeychain { DaemonKeychain.test(path, identifier) }

    /// Ends the process and starts it again.
    func restart(with signal: Int32) throws -> ChildProcess.Ending {
        process.send(signal: signal)
        let ending = try process.waitUntilEnded()
        process = try Self.start(in: directory.path)
        return ending
    }

    /// Returns when the program accepts connections.
    private static func start(in directory: String) throws -> ChildProcess {
        let process = try ChildProcess(
            try BuiltProgram.path(of: "keychaind"),
            ["--socket", directory + "/socket", "--directory", directory + "/keychains", "--entitlements", directory + "/entitlements"])
        waitUntil { isListening(at: directory + "/socket") }
        return process
    }

    static func isListening(at path: String) -> Bool {
        // The path lives until the call returns.
        let number = unsafe keychain_test_connect_packets(path)
        if number >= 0 { close(number) }
        return number >= 0
    }
}

extension DaemonKeychain {
    static func test(_ path: String, _ identifier: String) -> DaemonKeychain {
        DaemonKeychain(
            DaemonClient(
                entitlements: Entitlements(applicationIdentifier: identifier), connector: DaemonClient.connector(toSocketAt: path)))
    }
}

extension Keychain {
    func set(_ account: String, _ value: String) throws(KeychainFailure) {
        let request = AddRequest(
            itemClass: .genericPassword, attributes: ItemAttributes([.account: .string(account)]), secret: Data(value.utf8))
        do throws(KeychainFailure) {
            _ = try add(request)
        } catch {
            guard error.status == .duplicateItem else { throw error }
            try update(UpdateRequest(query: .account(account), secret: Data(value.utf8)))
        }
    }

    func value(of account: String) throws(KeychainFailure) -> String {
        let items = try copyMatching(MatchRequest(query: .account(account), includesSecrets: true, attributes: .none))
        return String(decoding: items.first?.secret ?? Data(), as: UTF8.self)
    }
}

extension ItemQuery {
    static func account(_ account: String) -> ItemQuery {
        ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string(account)]))
    }
}

/// A connection on which a test sends what it wants.
final class RawConnection {
    let socket: PacketSocket
    /// The descriptor of the socket.
    let number: Int32

    init(_ path: String) throws(Errno) {
        // The path lives until the call returns.
        number = unsafe keychain_test_connect_packets(path)
        socket = try PacketSocket(adopting: number)
    }

    /// Returns the next packet; nil if keychaind has closed the connection.
    func receive() throws -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: WireProtocol.largestPacketByteCount)
        do throws(Errno) {
            guard let received = try socket.receive(into: &buffer, until: .after(seconds: 30)) else { return nil }
            return Array(buffer[..<received.byteCount])
        } catch {
            guard error == .connectionReset else { throw error }
            return nil
        }
    }

    func send(_ message: Message) throws {
        try message.forEachPacket { packet throws(Errno) in try socket.send(packet, until: .after(seconds: 10)) }
    }

    /// Receives the greeting, and returns its nonce.
    func greeting() throws -> [UInt8] {
        var assembly = MessageAssembly(limit: 1_000)
        guard let packet = try receive(), let message = try assembly.add(packet[...]) else { throw NoGreeting() }
        return try Hello(parsing: message).nonce
    }

    struct NoGreeting: Error {}
}
