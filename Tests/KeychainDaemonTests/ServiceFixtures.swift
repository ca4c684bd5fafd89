// SPDX-License-Identifier: Apache-2.0
import CKeychainTestShims
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainPeers
import KeychainSystem
import KeychainTestSupport

@testable import keychaind

/// keychaind's code in this process, for a keychain that the test makes.
final class InProcessService: Sendable {
    let path: String
    private let service: Service
    private let directory: TemporaryDirectory

    convenience init(
        _ keychain: LocalKeychain, as identity: PeerIdentity = .programGroup("test"), accounts: Accounts = Accounts(),
        agents: Agents? = nil, grants: UserGrants? = nil, registrations: ProgramRegistrations = ProgramRegistrations()
    ) throws {
        try self.init(
            SharedServices(
                beginUse: { _, _ in UsedKeychain(keychain: keychain, grants: grants) }, endUse: { _ in },
                identify: { _, declared in
                    IdentifiedProgram(identity: identity, entitlements: declared, registrations: registrations)
                }, accounts: accounts,
                agents: agents))
    }

    /// With the keychains of all users in a directory.
    convenience init(keychainsIn directory: String, handoverTimeoutSeconds: UInt32 = 60, fingerprints: Fingerprints? = nil) throws {
        let keychains = UserKeychains(in: directory)
        try self.init(
            SharedServices(
                beginUse: { user, storeID throws(KeychainFailure) in try keychains.beginUse(ofUser: user, storeID: storeID) },
                endUse: { keychains.endUse(ofUser: $0) },
                identify: { _, declared in IdentifiedProgram(identity: .anyProgram, entitlements: declared) }, keychains: keychains,
                sessions: SessionWatch(keychains, watcher: "root", timeoutSeconds: 60), fingerprints: fingerprints,
                handoverTimeoutSeconds: handoverTimeoutSeconds))
    }

    private init(_ services: SharedServices) throws {
        directory = try TemporaryDirectory(inMemory: true)
        path = directory.path + "/socket"
        service = try Service(services, PacketListener(at: path))
        guard BackgroundThread.start({ [service] in service.run() }) else { throw NoThread() }
    }

    private struct NoThread: Error {}

    deinit { end() }

    /// Ends the service soon, after the requests that it has received.
    func end() { service.end() }

    /// A client, which keeps the service running.
    func client(_ identifier: String = "app", storeID: StoreID? = nil, launcher: (any AgentLauncher)? = nil) -> DaemonKeychain {
        let connector = DaemonClient.connector(toSocketAt: path)
        return DaemonKeychain(
            DaemonClient(entitlements: Entitlements(applicationIdentifier: identifier), storeID: storeID, launcher: launcher) {
                [self] deadline throws(KeychainFailure) in
                try withExtendedLifetime(self) { () throws(KeychainFailure) in try connector(deadline) }
            })
    }
}

/// The program keychaind as a child process, with directories of its own.
final class SpawnedService {
    let directory: TemporaryDirectory
    private(set) var process: ChildProcess
    /// The keychain that the user has handed over; nil if none.
    private(set) var storeID: StoreID?
    private let options: [String]

    var path: String { directory.path + "/socket" }
    var registrations: String { directory.path + "/entitlements" }

    /// `prepare` is called with the keychain before it is adopted.
    init(adopting: Bool = true, options: [String] = [], _ prepare: (LocalKeychain) throws -> Void = { _ in }) throws {
        directory = try TemporaryDirectory()
        self.options = options
        process = try Self.start(in: directory.path, options)
        guard adopting else { return }
        let keychain = LocalKeychain(home: directory.path + "/home") { $0.useTestPolicy(in: directory.path) }
        try prepare(keychain)
        storeID = try keychain.handOver(to: DaemonClient.connector(toSocketAt: path)).storeID
    }

    func client(_ identifier: String = "app", launcher: (any AgentLauncher)? = nil) -> DaemonKeychain {
        DaemonKeychain.test(path, identifier, storeID: storeID, launcher: launcher)
    }

    /// Starts the process again after it has ended.
    func start() throws { process = try Self.start(in: directory.path, options) }

    /// Ends the process and starts it again.
    func restart(with signal: Int32) throws -> ChildProcess.Ending {
        process.send(signal: signal)
        let ending = try process.waitUntilEnded()
        try start()
        return ending
    }

    /// Returns when the program accepts connections.
    private static func start(in directory: String, _ options: [String]) throws -> ChildProcess {
        let process = try ChildProcess(
            try BuiltProgram.path(of: "keychaind"),
            ["--socket", directory + "/socket", "--directory", directory + "/keychains", "--entitlements", directory + "/entitlements"]
                + options)
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
    static func test(
        _ path: String, _ identifier: String, storeID: StoreID?, launcher: (any AgentLauncher)? = nil
    ) -> DaemonKeychain {
        DaemonKeychain(
            DaemonClient(
                entitlements: Entitlements(applicationIdentifier: identifier), storeID: storeID, launcher: launcher,
                connector: DaemonClient.connector(toSocketAt: path)))
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

/// Returns the failure of a call; nil if it succeeds.
func failure(_ body: () throws -> Void) -> KeychainFailure? {
    do {
        try body()
        return nil
    } catch {
        return error as? KeychainFailure
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

    /// Sends a message, and with an identification the descriptor that it must carry.
    func send(_ message: Message) throws {
        let event = try WakeupDescriptor()
        let passed = message.kind == .identify ? event.descriptor : nil
        try message.forEachPacket { packet throws(Errno) in try socket.send(packet, passing: passed, until: .after(seconds: 10)) }
    }

    /// Receives the greeting, and returns its nonce.
    func greeting() throws -> [UInt8] {
        var assembly = MessageAssembly(limit: 1_000)
        guard let packet = try receive(), let message = try assembly.add(packet[...]) else { throw NoGreeting() }
        return try Hello(parsing: message).nonce
    }

    /// Says who it is, and receives the reply.
    func identify() throws {
        try send(Identification(nonce: try greeting(), Entitlements(applicationIdentifier: "app")).message)
        _ = try receive()
    }

    struct NoGreeting: Error {}
}

/// The memory of another process.
enum ProcessMemory {
    struct Unreadable: Error {}

    /// Returns the indices of the values that are in the memory that the process can write.
    static func finds(_ values: [[UInt8]], in process: pid_t) throws -> Set<Int> {
        let memory = unsafe open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0, let maps = Self.text("/proc/\(process)/maps") else { throw Unreadable() }
        defer { close(memory) }
        var found: Set<Int> = []
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        let overlap = UInt64(values.map(\.count).max() ?? 0)
        for line in maps.split(separator: "\n") {
            let parts = line.split(separator: " ")
            let bounds = parts[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard bounds.count == 2, parts[1].hasPrefix("rw") else { continue }
            var position = bounds[0]
            while position < bounds[1] {
                let count = Int(min(bounds[1] - position, UInt64(buffer.count)))
                // The buffer has as many bytes.
                let read = unsafe pread(memory, &buffer, count, off_t(position))
                // The part of the buffer that was read, within the closure.
                unsafe buffer.withUnsafeBytes { bytes in
                    let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<max(read, 0)])
                    for index in values.indices where unsafe part.contains(bytes: values[index]) { found.insert(index) }
                }
                position += UInt64(count)
                if position < bounds[1] { position -= overlap }
            }
        }
        return found
    }

    /// Reads a file of /proc, of which one read returns a part only.
    private static func text(_ path: String) -> String? {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes: [UInt8] = []
        while let part = DescriptorReader.read(file) { bytes += part }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The helpers in C, each of which is compiled once per test run, with Address Sanitizer.
enum HelperProgram {
    static let watch = Result { try compile("keychain_watch") }
    static let fingerprint = Result { try compile("keychain_fingerprint") }

    private struct CompilerFailure: Error {
        let output: String
    }

    private static let directory = Result { try TemporaryDirectory.untilExit() }

    private static func compile(_ name: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let program = try directory.get().path + "/" + name
        let compiler = try ChildProcess.run(
            "clang",
            [
                "-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address", "-fno-omit-frame-pointer",
                "\(root.path)/Helpers/\(name).c", "-o", program, "-lsystemd",
            ], environment: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"])
        guard compiler.ending == .exited(0) else { throw CompilerFailure(output: compiler.output) }
        return program
    }
}
