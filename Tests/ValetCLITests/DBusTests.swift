// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainSystem
import KeychainTestSupport
import Testing

@testable import ValetCLI

@Suite("Messages of D-Bus")
struct DBusTests {
    private static let signature = "ybnqiuxtdsogayasa{sv}(oayays)v"
    private static let values: [DBusValue] = [
        .number(255), .number(1), .number(0xFFFE), .number(2), .number(3), .number(4), .number(.max), .number(6), .number(7),
        .text("é"), .text("/a"), .text("a{sv}"), .bytes([0, 255]), .list([.text(""), .text("b")]),
        .list([.list([.text("k"), .variant(signature: "at", .list([.number(1)]))])]),
        .list([.text("/s"), .bytes([]), .bytes([1]), .text("c")]),
        .variant(signature: "v", .variant(signature: "as", .list([]))),
    ]

    @Test("Values of every type are read as they were written")
    func roundTrip() throws {
        let message = DBusMessage(
            .signal, serial: 7, [.path: .text("/a"), .member: .text("B")], body: Self.values, signature: Self.signature)
        let bytes = message.encoded
        #expect(try DBusMessage.byteCount(prefix: Array(bytes.prefix(16))) == bytes.count)
        let decoded = try DBusMessage(decoding: Array(bytes.prefix(16)), Array(bytes.dropFirst(16)))
        #expect(decoded.body == Self.values && decoded.kind == .signal && decoded.serial == 7)
        #expect(decoded.text(.path) == "/a" && decoded.text(.member) == "B" && decoded.text(.errorName) == nil)
    }

    @Test("A big-endian message is read")
    func bigEndian() throws {
        var reader = DBusReader([0, 0, 0, 2, 0x68, 0x69, 0, 0, 0, 0, 1, 2], from: 0, isBigEndian: true)
        #expect(try reader.values("su") == [.text("hi"), .number(0x102)])
    }

    @Test("No damage to a message crashes the reader")
    func damage() {
        let valid = DBusMessage(.signal, serial: 7, [:], body: Self.values, signature: Self.signature).encoded
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<Scale.pick(3_000, full: 200_000) {
            var bytes = Array(valid.prefix(Int.random(in: 16...valid.count, using: &generator)))
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: .min ... .max, using: &generator)
            }
            _ = try? DBusMessage.byteCount(prefix: Array(bytes.prefix(16)))
            _ = try? DBusMessage(decoding: Array(bytes.prefix(16)), Array(bytes.dropFirst(16)))
        }
    }

    @Test("Invalid signatures, and types in each other without end", arguments: ["a", "(", "(s", "()", "a{}", "z", ")", "a(", "aé"])
    func signatures(_ signature: String) {
        #expect(DBusType.types(signature) == nil)
        #expect(DBusType.types(String(repeating: "a", count: 100_000) + "y") == nil)
        var reader = DBusReader(Array(repeating: [1, UInt8(ascii: "v"), 0], count: 10_000).flatMap(\.self), from: 0, isBigEndian: false)
        #expect(throws: DBusReader.Malformed.self) { try reader.values("v") }
    }

    @Test("Addresses of a session bus")
    func addresses() {
        func addresses(_ text: String?) -> [LocalSocket.Address] {
            DBusAddress.session(["XDG_RUNTIME_DIR": "/run/user/1", "DBUS_SESSION_BUS_ADDRESS": text].compactMapValues(\.self))
        }
        #expect(addresses(nil) == [.path("/run/user/1/bus")] && addresses("") == [.path("/run/user/1/bus")])
        #expect(addresses("unix:path=/a%20b,guid=0") == [.path("/a b")])
        let several = addresses("unix:guid=0,abstract=/tmp/dbus-1;tcp:host=a;unix:runtime=yes")
        #expect(several == [.abstract("/tmp/dbus-1"), .path("/run/user/1/bus")])
        for text in ["tcp:host=a,port=1", "autolaunch:", "disabled:", "unix:tmpdir=/tmp", "unix:path", "unix:path=%zz"] {
            #expect(addresses(text).isEmpty, "\(text)")
        }
        #expect(DBusAddress.session([:]).isEmpty)
    }

    @Test("A path that is too long for a socket, and a name without a file")
    func socketAddresses() {
        let long = LocalSocket.Address.path("/" + String(repeating: "a", count: 200))
        #expect(throws: Errno.self) { _ = try LocalSocket(long, until: .after(seconds: 60)) }
        #expect(throws: Errno.self) { _ = try LocalSocket(.abstract("valet-\(UUID())"), until: .after(seconds: 60)) }
    }
}
