// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import CSystemdShims
internal import KeychainCore
internal import KeychainSystem

/// A connection to the bus of the session.
///
/// sd-bus is not thread-safe: only the thread that has made the connection uses it.
@safe final class Bus {
    static let serviceName = "org.freedesktop.secrets"
    private static let ownerCredentials = UInt64(SD_BUS_CREDS_PID | SD_BUS_CREDS_COMM | SD_BUS_CREDS_AUGMENT)

    // Made by `init`, released by `deinit`.
    private let bus: OpaquePointer

    /// Connects to the bus that the environment names.
    init() throws(KeychainFailure) {
        var made: OpaquePointer?
        let result = unsafe sd_bus_open_user(&made)
        guard result >= 0, let made = unsafe made else {
            throw KeychainFailure(
                .notAvailable, "the message bus of the session cannot be reached: \(Errno(rawValue: -result))",
                cause: .system(errno: -result))
        }
        unsafe bus = made
    }

    deinit { _ = unsafe sd_bus_flush_close_unref(bus) }

    /// Serves the objects.
    ///
    /// Both arguments must outlive the bus.
    @unsafe func serve(_ handlers: UnsafePointer<keychain_bus_handlers>, _ context: UnsafeMutableRawPointer) throws(KeychainFailure) {
        try check(unsafe keychain_bus_serve(bus, handlers, context), "the objects cannot be served")
    }

    /// Takes the name of the service, and fails if another program has it: waiting for it would let callers wait.
    func takeName() throws(KeychainFailure) {
        guard try take(Self.serviceName) else {
            let owner = owner.map { ": \($0)" } ?? ""
            throw KeychainFailure(.notAvailable, "another program is the keyring of this session\(owner)", cause: .busy)
        }
    }

    /// Takes a name without waiting; returns false if another program has it.
    func take(_ name: String) throws(KeychainFailure) -> Bool {
        let result = unsafe sd_bus_request_name(bus, name, 0)
        guard result != -Errno.exists.rawValue else { return false }
        try check(result, "the name \(name) cannot be taken")
        return true
    }

    /// The program that is the keyring.
    private var owner: String? {
        unsafe withOwner(of: Self.serviceName, Self.ownerCredentials) { credentials in
            var process: Int32 = 0
            var name: UnsafePointer<CChar>?
            guard unsafe sd_bus_creds_get_pid(credentials, &process) >= 0 else { return nil }
            // The text belongs to the credentials, and is copied.
            _ = unsafe sd_bus_creds_get_comm(credentials, &name)
            return unsafe "\(BusMessage.text(name)) (process \(process))"
        }
    }

    /// Whether the connection with this unique name has a name now, according to the bus.
    func isOwner(_ connection: String, of name: String) -> Bool { connectionOfOwner(of: name) == connection }

    private func connectionOfOwner(of name: String) -> String? {
        unsafe withOwner(of: name, UInt64(SD_BUS_CREDS_UNIQUE_NAME)) { credentials in
            var unique: UnsafePointer<CChar>?
            // As in `owner`.
            guard unsafe sd_bus_creds_get_unique_name(credentials, &unique) >= 0 else { return nil }
            return unsafe BusMessage.text(unique)
        }
    }

    /// Returns nil if no program has the name.
    @unsafe private func withOwner(of name: String, _ mask: UInt64, _ body: (OpaquePointer) -> String?) -> String? {
        var credentials: OpaquePointer?
        guard unsafe sd_bus_get_name_creds(bus, name, mask, &credentials) >= 0, let credentials = unsafe credentials else { return nil }
        defer { _ = unsafe sd_bus_creds_unref(credentials) }
        return unsafe body(credentials)
    }

    /// Returns the number of the process that has made a connection.
    ///
    /// Throws `.notAvailable` for a connection that does not exist any more.
    func process(of connection: String) throws(KeychainFailure) -> Int32 {
        var credentials: OpaquePointer?
        try check(
            unsafe sd_bus_get_name_creds(bus, connection, UInt64(SD_BUS_CREDS_PID), &credentials), "the caller is not known to the bus")
        defer { _ = unsafe sd_bus_creds_unref(credentials) }
        var process: Int32 = 0
        try check(unsafe sd_bus_creds_get_pid(credentials, &process), "the bus does not name the process of the caller")
        return process
    }

    /// Handles one message or sends one; returns false if there is nothing to do.
    func process() throws(KeychainFailure) -> Bool {
        try check(unsafe sd_bus_process(bus, nil), "the message bus is lost") > 0
    }

    func wait(for event: FileDescriptor, milliseconds: Int64) throws(KeychainFailure) {
        try check(unsafe keychain_bus_wait(bus, event.rawValue, milliseconds), "the message bus is lost")
    }

    /// Calls a method of the program that has the name, and waits for its reply.
    func performCall<Value>(
        _ member: String, of destination: String = serviceName, at path: String, _ interface: String,
        _ append: (BusMessage) throws(BusError) -> Void, _ read: (BusMessage) throws(BusError) -> Value
    ) throws(BusError) -> Value {
        var made: OpaquePointer?
        guard unsafe sd_bus_message_new_method_call(bus, &made, destination, path, interface, member) >= 0, let call = unsafe made
        else { throw .invalidArguments("\"\(path)\" is no path of an object") }
        defer { _ = unsafe sd_bus_message_unref(call) }
        // The bus would start this program, if it is to be the keyring.
        _ = unsafe sd_bus_message_set_auto_start(call, 0)
        try append(unsafe BusMessage(call))
        var failure = unsafe sd_bus_error()
        var received: OpaquePointer?
        defer { unsafe sd_bus_error_free(&failure) }
        // 0 is the usual time limit.
        let result = unsafe sd_bus_call(bus, call, 0, &failure, &received)
        guard result >= 0, let reply = unsafe received else {
            let name = unsafe BusMessage.text(failure.name)
            throw unsafe BusError(name, "\(member): \(BusMessage.text(failure.message)) (\(name))")
        }
        defer { _ = unsafe sd_bus_message_unref(reply) }
        return try read(unsafe BusMessage(reply))
    }

    /// Has the bus deliver a signal of an object of the keyring.
    func subscribe(to member: String, from path: String, _ interface: String) throws(BusError) {
        let rule = "type='signal',sender='\(Self.serviceName)',path='\(path)',interface='\(interface)',member='\(member)'"
        try performCall(
            "AddMatch", of: "org.freedesktop.DBus", at: "/org/freedesktop/DBus", "org.freedesktop.DBus",
            { message throws(BusError) in try message.append(rule) }, { _ in })
    }

    /// Waits for a signal after `subscribe`; returns nil at the deadline, or if the keyring ends before.
    func signal<Value>(
        _ member: String, from path: String, _ interface: String, until deadline: Deadline,
        _ read: (BusMessage) throws(BusError) -> Value
    ) throws(BusError) -> Value? {
        let connection = connectionOfOwner(of: Self.serviceName)
        while true {
            var received: OpaquePointer?
            let result = unsafe sd_bus_process(bus, &received)
            guard result >= 0 else { throw .failed("the message bus is lost") }
            if let message = unsafe received {
                defer { _ = unsafe sd_bus_message_unref(message) }
                let signal = unsafe BusMessage(message)
                // The bus delivers each signal that has a destination, from any program.
                let isExpected = unsafe sd_bus_message_is_signal(message, interface, member) > 0 && signal.sender == connection
                if isExpected, signal.path == path { return try read(signal) }
            }
            guard !deadline.isOver else { return nil }
            guard result == 0 else { continue }
            guard let connection, isOwner(connection, of: Self.serviceName) else { return nil }
            // Not until the deadline: nothing tells that the keyring has ended.
            _ = unsafe sd_bus_wait(bus, 1_000_000)
        }
    }

    /// The name of the program that is the keyring, of which the kernel keeps 15 bytes.
    var ownerProgram: String? {
        unsafe withOwner(of: Self.serviceName, Self.ownerCredentials) { credentials in
            var name: UnsafePointer<CChar>?
            // As in `owner`.
            guard unsafe sd_bus_creds_get_comm(credentials, &name) >= 0 else { return nil }
            return unsafe BusMessage.text(name)
        }
    }

    /// Sends a signal from an object, to all programs or to one.
    func emit(
        _ member: String, from path: ObjectPath, _ interface: String, to destination: String? = nil,
        _ body: (BusMessage) throws(BusError) -> Void
    ) {
        var made: OpaquePointer?
        guard unsafe sd_bus_message_new_signal(bus, &made, path.text, interface, member) >= 0 else { return }
        // A signal has no caller that could be told of a failure. A bus that is lost ends the process.
        try? unsafe BusMessage.send(made) { message throws(BusError) in
            if let destination { try message.setDestination(destination) }
            try body(message)
        }
    }

    /// Announces the new value of a property to one connection.
    func emitChange(
        of property: String, at path: ObjectPath, _ interface: String, type: String, to destination: String,
        _ append: (BusMessage) throws(BusError) -> Void
    ) {
        emit("PropertiesChanged", from: path, "org.freedesktop.DBus.Properties", to: destination) { message throws(BusError) in
            try message.append(interface)
            try message.appendContainer(BusType.array, "{sv}") { () throws(BusError) in
                try message.appendContainer(BusType.entry, "sv") { () throws(BusError) in
                    try message.append(property)
                    try message.appendContainer(BusType.variant, type) { () throws(BusError) in try append(message) }
                }
            }
            try message.appendContainer(BusType.array, "s") { () throws(BusError) in }
        }
    }

    /// Announces the new value of a property.
    func emitChange(of property: String, at path: ObjectPath, _ interface: String) {
        unsafe property.withCString { name in
            // sd-bus only reads the names.
            var names = unsafe [UnsafeMutablePointer(mutating: name), nil]
            _ = unsafe sd_bus_emit_properties_changed_strv(bus, path.text, interface, &names)
        }
    }

    @discardableResult
    private func check(_ result: Int32, _ context: String) throws(KeychainFailure) -> Int32 {
        guard result >= 0 else {
            throw KeychainFailure(.notAvailable, "\(context): \(Errno(rawValue: -result))", cause: .system(errno: -result))
        }
        return result
    }
}
#endif
