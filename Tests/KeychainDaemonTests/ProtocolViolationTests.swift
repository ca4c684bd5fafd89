// SPDX-License-Identifier: Apache-2.0
import CKeychainTestShims
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainIPC
import KeychainSystem
import KeychainTestSupport
import KeychainTesting
import Testing

@testable import keychaind

@Suite("Connections to keychaind that do not follow its protocol", .blocking)
struct ProtocolViolationTests {
    @Test("A program that does not follow the protocol is disconnected", arguments: Misbehavior.allCases)
    func misbehavior(_ misbehavior: Misbehavior) throws {
        let service = try InProcessService(try InMemoryKeychain().keychain)
        let connection = try RawConnection(service.path)
        let nonce = try connection.greeting()
        try misbehavior.act(on: connection, nonce)
        while let packet = try connection.receive() {
            // At most the reply to what was right before.
            #expect(packet[1] == PacketKind.reply.rawValue)
        }
        // Others are served.
        try service.client().set("a", "1")
    }

    enum Misbehavior: CaseIterable {
        case wrongNonce, identificationWithoutDescriptor, requestBeforeIdentification, unknownKind, emptyPacket, hugeRequest,
            partWithoutMessage, malformedRequest
        case secondIdentification, requestAfterObservation

        func act(on connection: RawConnection, _ nonce: [UInt8]) throws {
            let identification = Identification(nonce: nonce, Entitlements(applicationIdentifier: "app")).message
            switch self {
            case .wrongNonce:
                try connection.send(
                    Identification(nonce: Array(repeating: 0, count: 16), Entitlements(applicationIdentifier: "app")).message)
            case .identificationWithoutDescriptor:
                try identification.forEachPacket { packet throws(Errno) in try connection.socket.send(packet, until: .after(seconds: 10)) }
            case .requestBeforeIdentification: try connection.send(Request(.sessionStatus).message)
            case .unknownKind: try connection.socket.send([1, 99, 0, 0, 0, 0, 0, 0], until: .after(seconds: 10))
            case .emptyPacket: try connection.socket.send([], until: .after(seconds: 10))
            case .hugeRequest:
                try connection.send(identification)
                let byteCount = UInt32(WireProtocol.largestRequestByteCount + 1)
                let packet: [UInt8] = [1, 3, 1, 0] + (0..<4).map { UInt8(truncatingIfNeeded: byteCount >> (8 * $0)) }
                try connection.socket.send(packet, until: .after(seconds: 10))
            case .partWithoutMessage:
                try connection.send(identification)
                try connection.socket.send([1, 6, 0, 0, 1, 0, 0, 0, 7], until: .after(seconds: 10))
            case .malformedRequest:
                try connection.send(identification)
                try connection.send(Message(.request, operation: 2, body: [1, 2, 3]))
            case .secondIdentification:
                try connection.send(identification)
                // Without a descriptor, which the kernel may refuse to send from here on.
                try identification.forEachPacket { packet throws(Errno) in try connection.socket.send(packet, until: .after(seconds: 10)) }
            case .requestAfterObservation:
                try connection.send(identification)
                try connection.send(Request(.observeChanges).message)
                try connection.send(Request(.sessionStatus).message)
            }
        }
    }

    @Test("A request with a descriptor is refused, and the descriptor is not kept")
    func descriptors() throws {
        let service = try InProcessService(try InMemoryKeychain().keychain)
        let connection = try RawConnection(service.path)
        try connection.identify()
        // The other end of the pair is at its end once no descriptor of this one is open.
        let pair = try ChildConnection()
        let packet: [UInt8] = [1, 3, 16, 0, 2, 0, 0, 0, 0, 0]
        // As many bytes as the array has. Since Linux 6.16 the kernel refuses to send the packet.
        let isSent = unsafe keychain_test_send_descriptor(connection.number, pair.childEnd, 1, packet, packet.count)
        close(pair.childEnd)
        if isSent { #expect(try connection.receive() == nil) }
        #expect(DescriptorReader.readable([pair.ownEnd], until: .now + .seconds(30)) == [pair.ownEnd])
        #expect(DescriptorReader.read(pair.ownEnd) == nil)
        close(pair.ownEnd)
    }

    @Test("An identification with two descriptors is refused, and none is kept")
    func twoDescriptors() throws {
        let service = try InProcessService(try InMemoryKeychain().keychain)
        let connection = try RawConnection(service.path)
        let identification = Identification(nonce: try connection.greeting(), Entitlements(applicationIdentifier: "app")).message
        let pair = try ChildConnection()
        try identification.forEachPacket { packet throws(Errno) in
            // As many bytes as the packet has.
            #expect(unsafe keychain_test_send_descriptor(connection.number, pair.childEnd, 2, packet, packet.count))
        }
        close(pair.childEnd)
        #expect(try connection.receive() == nil)
        #expect(DescriptorReader.readable([pair.ownEnd], until: .now + .seconds(30)) == [pair.ownEnd])
        #expect(DescriptorReader.read(pair.ownEnd) == nil)
        close(pair.ownEnd)
    }

    @Test("A process that has inherited a connection cannot use it")
    func inheritedConnection() throws {
        let service = try InProcessService(try InMemoryKeychain().keychain)
        try withTemporaryDirectory(inMemory: true) { directory in
            var packets: [[UInt8]] = []
            Request(.sessionStatus).message.forEachPacket { packets.append(Array($0)) }
            let packet = try #require(packets.first)
            #expect(packets.count == 1)
            try Data(packet).write(to: URL(filePath: directory + "/packet"))
            let connection = try RawConnection(service.path)
            try connection.identify()
            // The process that has made the connection gets a reply to the same packet.
            try connection.socket.send(packet, until: .after(seconds: 10))
            #expect(try connection.receive() != nil)
            #expect(try run("/bin/cat", directory + "/packet", outputTo: connection.number) == 0)
            #expect(try connection.receive() == nil)
        }
    }

    /// Runs a program whose standard output is a descriptor of this process, and returns its status.
    private func run(_ program: String, _ argument: String, outputTo descriptor: Int32) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = [argument]
        process.standardOutput = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }
}
