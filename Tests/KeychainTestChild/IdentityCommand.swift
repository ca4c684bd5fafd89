// SPDX-License-Identifier: Apache-2.0
import CKeychainTestShims
import Glibc
import KeychainCore
import KeychainIPC
import KeychainSystem

extension ChildCommand {
    /// SOCKET PROGRAM: connects to keychaind, and executes a program of this kind, which continues with the connection.
    static func executeAfterConnecting(_ arguments: [String]) throws {
        guard arguments.count == 2 else { throw BadArguments() }
        // The path lives until the call returns.
        let number = unsafe keychain_test_connect_packets(arguments[0])
        guard number >= 0, fcntl(number, F_SETFD, 0) == 0, let packet = packet(from: number) else { throw BadArguments() }
        let nonce = try Hello(parsing: try message(packet)).nonce
        let words = [arguments[1], "identify-on", "\(number)", nonce.map { "\($0)" }.joined(separator: ",")]
        var pointers = unsafe words.map { unsafe strdup($0) } + [nil]
        // The strings live until the program is replaced, or ends.
        _ = unsafe execv(arguments[1], &pointers)
        throw BadArguments()
    }

    /// NUMBER NONCE: says who it is on a connection that another program has made, and prints what keychaind replies.
    static func identify(_ arguments: [String]) throws {
        guard arguments.count == 2, let number = Int32(arguments[0]) else { throw BadArguments() }
        let nonce = arguments[1].split(separator: ",").compactMap { UInt8($0) }
        let identification = Identification(nonce: nonce, Entitlements(applicationIdentifier: "any"))
        identification.message.forEachPacket { packet in
            // The array outlives the call. Any descriptor will do.
            _ = unsafe keychain_test_send_descriptor(number, number, 1, packet, packet.count)
        }
        guard let packet = packet(from: number) else { return say("closed") }
        guard case .identified(let level, let groups) = try Response(parsing: try message(packet)).reply else { throw BadArguments() }
        say("level \(level.rawValue) \(groups.joined(separator: " "))")
    }

    /// Tries what keychain-peer forbids itself, before and after it does that.
    static func tryConfinedCalls(_ arguments: [String]) throws {
        let before = keychain_test_possible_calls()
        try ProcessHardening.confineToInspection()
        say("possible before \(before) after \(keychain_test_possible_calls())")
    }

    private static func packet(from number: Int32) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: WireProtocol.largestPacketByteCount)
        // As many bytes as the buffer has.
        let count = unsafe recv(number, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    private static func message(_ packet: [UInt8]) throws -> Message {
        var assembly = MessageAssembly(limit: 65_536)
        guard let message = try assembly.add(packet[...]) else { throw BadArguments() }
        return message
    }
}
