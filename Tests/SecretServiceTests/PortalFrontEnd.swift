// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
import CSystemdShims
import Foundation
import Glibc
import KeychainTestSupport
import Testing

/// A program that calls the portal as xdg-desktop-portal does.
@safe final class PortalFrontEnd {
    static let name = "org.freedesktop.portal.Desktop"
    static let backEnd = "org.freedesktop.impl.portal.desktop.keychain"
    static let path = "/org/freedesktop/portal/desktop"

    /// The answer to a call.
    enum Answer: Equatable {
        case response(UInt32)
        case error(String)
    }

    /// A call that is answered later.
    final class Call {
        let handle: String
        fileprivate(set) var answer: Answer?

        fileprivate init(handle: String) { self.handle = handle }
    }

    enum Failure: Error {
        case noBus(Int32)
        case noAnswer
    }

    /// Longer than any call takes, unless a test fails.
    private static let timeoutMicroseconds: UInt64 = 60_000_000

    private let bus: OpaquePointer
    private var handleCount = 0

    /// Connects to the bus that the environment of a session names; `isFrontEnd`: with the name of xdg-desktop-portal.
    init(_ environment: [String: String], isFrontEnd: Bool = true) throws {
        var made: OpaquePointer?
        try Self.check(unsafe sd_bus_new(&made))
        guard let connection = unsafe made else { throw Failure.noBus(0) }
        unsafe bus = connection
        try Self.check(unsafe sd_bus_set_address(bus, environment["DBUS_SESSION_BUS_ADDRESS"]))
        try Self.check(unsafe sd_bus_set_bus_client(bus, 1))
        try Self.check(unsafe sd_bus_start(bus))
        if isFrontEnd { try Self.check(unsafe sd_bus_request_name(bus, Self.name, 0)) }
    }

    deinit { _ = unsafe sd_bus_flush_close_unref(bus) }

    @discardableResult
    private static func check(_ result: Int32) throws -> Int32 {
        guard result >= 0 else { throw Failure.noBus(result) }
        return result
    }

    // MARK: Calls

    /// Asks for the secret of an application.
    func begin(
        _ application: String, writingTo descriptor: Int32, handle: String? = nil, backEnd: String = PortalFrontEnd.backEnd
    ) throws -> Call {
        handleCount += 1
        let call = Call(handle: handle ?? "\(Self.path)/request/1_1/t\(handleCount)")
        var made: OpaquePointer?
        try Self.check(
            unsafe sd_bus_message_new_method_call(
                bus, &made, backEnd, Self.path, "org.freedesktop.impl.portal.Secret", "RetrieveSecret"))
        defer { _ = unsafe sd_bus_message_unref(made) }
        var number = descriptor
        // sd-bus copies the values, and the descriptor.
        try Self.check(unsafe sd_bus_message_append_basic(made, CChar(UInt8(ascii: "o")), call.handle))
        try Self.check(unsafe sd_bus_message_append_basic(made, CChar(UInt8(ascii: "s")), application))
        try Self.check(unsafe sd_bus_message_append_basic(made, CChar(UInt8(ascii: "h")), &number))
        try Self.check(unsafe sd_bus_message_open_container(made, CChar(UInt8(ascii: "a")), "{sv}"))
        try Self.check(unsafe sd_bus_message_close_container(made))
        // The callback releases this reference.
        let context = unsafe Unmanaged.passRetained(call).toOpaque()
        try Self.check(
            unsafe sd_bus_call_async(
                bus, nil, made,
                { message, context, _ in
                    guard let context = unsafe context else { return 0 }
                    let call = unsafe Unmanaged<Call>.fromOpaque(context).takeRetainedValue()
                    call.answer = unsafe PortalFrontEnd.answer(message)
                    return 1
                }, context, Self.timeoutMicroseconds))
        _ = unsafe sd_bus_flush(bus)
        return call
    }

    private static func answer(_ message: OpaquePointer?) -> Answer {
        // Both belong to the message.
        if let error = unsafe sd_bus_message_get_error(message) { return unsafe .error(String(cString: error.pointee.name)) }
        var response: UInt32 = .max
        _ = unsafe sd_bus_message_read_basic(message, CChar(UInt8(ascii: "u")), &response)
        return .response(response)
    }

    /// Waits for the answer to a call.
    func answer(to call: Call) throws -> Answer {
        while true {
            if let answer = call.answer { return answer }
            if try Self.check(unsafe sd_bus_process(bus, nil)) > 0 { continue }
            guard try Self.check(unsafe sd_bus_wait(bus, Self.timeoutMicroseconds)) > 0 else { throw Failure.noAnswer }
        }
    }

    /// Ends a call; returns the name of the error if that fails.
    func close(_ handle: String) throws -> String? {
        var failure = unsafe sd_bus_error()
        var made: OpaquePointer?
        defer { unsafe sd_bus_error_free(&failure) }
        try Self.check(
            unsafe sd_bus_message_new_method_call(bus, &made, Self.backEnd, handle, "org.freedesktop.impl.portal.Request", "Close"))
        defer { _ = unsafe sd_bus_message_unref(made) }
        guard unsafe sd_bus_call(bus, made, Self.timeoutMicroseconds, &failure, nil) < 0 else { return nil }
        return unsafe String(cString: failure.name)
    }

    /// Asks for a secret through a pipe, as libsecret does.
    func secret(of application: String, backEnd: String = PortalFrontEnd.backEnd) throws -> [UInt8] {
        let pipe = Pipe()
        let call = try begin(application, writingTo: pipe.fileHandleForWriting.fileDescriptor, backEnd: backEnd)
        let answer = try answer(to: call)
        try #require(answer == .response(0))
        try pipe.fileHandleForWriting.close()
        return Array(try #require(try pipe.fileHandleForReading.readToEnd()))
    }

    /// The answer for an application whose secret nothing reads.
    func answer(for application: String, handle: String? = nil) throws -> Answer {
        let pipe = Pipe()
        return try answer(to: try begin(application, writingTo: pipe.fileHandleForWriting.fileDescriptor, handle: handle))
    }
}
#endif
