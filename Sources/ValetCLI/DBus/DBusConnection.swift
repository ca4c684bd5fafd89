// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainSystem

/// A failure of a call on a bus.
enum DBusFailure: Error, Equatable {
    /// No address is known, or none that is a Unix domain socket.
    case noAddress
    /// No bus is at the address.
    case unreachable(Errno)
    /// The bus does not accept this user.
    case refused
    case connectionLost
    case timedOut
    /// Something sent what no message is.
    case malformed
    /// The bus or a service answered with an error of this name.
    case error(String)
}

/// A connection to a message bus.
///
/// Every wait has a deadline. The connection is closed with the last reference to it.
final class DBusConnection {
    /// Far more than a list of entries or a secret has: decoding takes many times the memory of a message, and has no deadline.
    private static let largestMessageByteCount = 8 << 20
    /// A line of the authentication, which is short.
    private static let longestLineByteCount = 1_024

    private let socket: LocalSocket
    private let timeoutMilliseconds: UInt64
    private var lastSerial: UInt32 = 0
    /// The signal that is waited for; any program can send others, as many as it likes.
    private var subscription: (path: String, member: String)?
    /// The first one that arrived.
    private var signal: DBusMessage?

    /// Connects to the first address that has a bus, and announces this program there.
    ///
    /// The timeout is that of the connection and of each call.
    init(_ addresses: [LocalSocket.Address], timeoutMilliseconds: UInt64) throws(DBusFailure) {
        self.timeoutMilliseconds = timeoutMilliseconds
        let deadline = Deadline.after(milliseconds: timeoutMilliseconds)
        socket = try Self.connect(addresses, until: deadline)
        try authenticate(until: deadline)
        _ = try call(
            "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", "Hello", [], signature: "")
    }

    private static func connect(_ addresses: [LocalSocket.Address], until deadline: Deadline) throws(DBusFailure) -> LocalSocket {
        var failure = DBusFailure.noAddress
        for address in addresses {
            do throws(Errno) {
                return try LocalSocket(address, until: deadline)
            } catch {
                failure = error == .timedOut ? .timedOut : .unreachable(error)
            }
        }
        throw failure
    }

    // MARK: Calls

    /// Calls a method, and returns the values of its reply.
    func call(
        _ destination: String, path: String, interface: String, _ member: String, _ arguments: [DBusValue], signature: String
    ) throws(DBusFailure) -> [DBusValue] {
        let deadline = Deadline.after(milliseconds: timeoutMilliseconds)
        lastSerial += 1
        let message = DBusMessage(
            .call, serial: lastSerial,
            [.path: .text(path), .interface: .text(interface), .member: .text(member), .destination: .text(destination)],
            body: arguments, signature: signature)
        try transfer { () throws(Errno) in try socket.send(message.encoded, until: deadline) }
        while true {
            let message = try receive(until: deadline)
            switch message.kind {
            case .reply where message.replySerial == lastSerial: return message.body
            case .error where message.replySerial == lastSerial: throw .error(message.text(.errorName) ?? "")
            case .signal: note(message)
            default: break
            }
        }
    }

    /// Asks the bus for the signals of an object, and for no others.
    func subscribe(path: String, interface: String, _ member: String) throws(DBusFailure) {
        subscription = (path, member)
        signal = nil
        let rule = "type='signal',path='\(path)',interface='\(interface)',member='\(member)'"
        _ = try call(
            "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", "AddMatch", [.text(rule)],
            signature: "s")
    }

    /// Waits for a signal of the subscription, which may have arrived already, and returns its values.
    func signal(until deadline: Deadline) throws(DBusFailure) -> [DBusValue] {
        while true {
            if let signal { return signal.body }
            let message = try receive(until: deadline)
            if message.kind == .signal { note(message) }
        }
    }

    private func note(_ message: DBusMessage) {
        guard let subscription, message.text(.path) == subscription.path, message.text(.member) == subscription.member else { return }
        signal = signal ?? message
    }

    // MARK: Transfer

    private func receive(until deadline: Deadline) throws(DBusFailure) -> DBusMessage {
        let prefix = try transfer { () throws(Errno) in
            try socket.receive(byteCount: DBusMessage.prefixByteCount, until: deadline)
        }
        guard let byteCount = try? DBusMessage.byteCount(prefix: prefix), byteCount <= Self.largestMessageByteCount else {
            throw .malformed
        }
        // Wiped, because replies have secrets.
        var bytes = try transfer { () throws(Errno) in
            try socket.receive(byteCount: byteCount - DBusMessage.prefixByteCount, until: deadline)
        }
        defer { bytes.wipe() }
        do throws(DBusReader.Malformed) {
            return try DBusMessage(decoding: prefix, bytes)
        } catch {
            throw .malformed
        }
    }

    private func transfer<Result>(_ body: () throws(Errno) -> Result) throws(DBusFailure) -> Result {
        do throws(Errno) {
            return try body()
        } catch {
            throw error == .timedOut ? .timedOut : .connectionLost
        }
    }

    /// Tells the bus the user of this process, which it compares with that of the socket.
    private func authenticate(until deadline: Deadline) throws(DBusFailure) {
        let user = "\(CurrentProcess.effectiveUserID)".utf8.map { String($0, radix: 16) }.joined()
        try transfer { () throws(Errno) in try socket.send(Array("\0AUTH EXTERNAL \(user)\r\n".utf8), until: deadline) }
        var line: [UInt8] = []
        while line.last != UInt8(ascii: "\n") {
            guard line.count < Self.longestLineByteCount else { throw .malformed }
            line += try transfer { () throws(Errno) in try socket.receive(byteCount: 1, until: deadline) }
        }
        guard line.starts(with: Array("OK".utf8)) else { throw .refused }
        try transfer { () throws(Errno) in try socket.send(Array("BEGIN\r\n".utf8), until: deadline) }
    }
}

/// Where the bus of a desktop session is.
enum DBusAddress {
    /// Returns the addresses in `DBUS_SESSION_BUS_ADDRESS`, or else the usual place.
    ///
    /// Transports other than local sockets are left out.
    ///
    /// Source: D-Bus Specification 0.41, "Server Addresses".
    static func session(_ environment: [String: String]) -> [LocalSocket.Address] {
        let runtimeDirectory = environment["XDG_RUNTIME_DIR"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        guard let text = environment["DBUS_SESSION_BUS_ADDRESS"], !text.isEmpty else {
            return runtimeDirectory.map { [.path($0 + "/bus")] } ?? []
        }
        return text.split(separator: ";").compactMap { address in
            guard address.hasPrefix("unix:") else { return nil }
            for parameter in address.dropFirst(5).split(separator: ",") {
                let parts = parameter.split(separator: "=", maxSplits: 1)
                guard parts.count == 2, let value = String(parts[1]).removingPercentEncoding else { return nil }
                switch parts[0] {
                case "path": return .path(value)
                case "abstract": return .abstract(value)
                case "runtime": return runtimeDirectory.map { .path($0 + "/bus") }
                default: continue
                }
            }
            return nil
        }
    }
}
