// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import CSystemdShims
internal import FoundationEssentials
internal import KeychainSystem

/// The type codes of D-Bus.
enum BusType {
    static let array = CChar(UInt8(ascii: "a"))
    static let boolean = CChar(UInt8(ascii: "b"))
    static let byte = CChar(UInt8(ascii: "y"))
    static let descriptor = CChar(UInt8(ascii: "h"))
    static let entry = CChar(UInt8(ascii: "e"))
    static let number = CChar(UInt8(ascii: "u"))
    static let path = CChar(UInt8(ascii: "o"))
    static let string = CChar(UInt8(ascii: "s"))
    static let structure = CChar(UInt8(ascii: "r"))
    static let time = CChar(UInt8(ascii: "t"))
    static let variant = CChar(UInt8(ascii: "v"))
}

/// A message of sd-bus, whose values are read and appended in order.
///
/// sd-bus checks a call's types against the table of its interface before it calls a handler. Only the content of a variant can be of another
/// type.
@safe struct BusMessage {
    // Valid for the duration of the handler that received it, for the lifetime of a `PendingCall`, or until the writer that made it has sent it.
    fileprivate let pointer: OpaquePointer

    @unsafe init(_ pointer: OpaquePointer) {
        unsafe self.pointer = pointer
    }

    var path: String { unsafe Self.text(sd_bus_message_get_path(pointer)) }
    var interface: String { unsafe Self.text(sd_bus_message_get_interface(pointer)) }
    var member: String { unsafe Self.text(sd_bus_message_get_member(pointer)) }
    /// The unique name of the caller's connection.
    var sender: String { unsafe Self.text(sd_bus_message_get_sender(pointer)) }

    /// The unique name of the connection that receives the message; empty for all.
    var destination: String { unsafe Self.text(sd_bus_message_get_destination(pointer)) }

    static func text(_ bytes: UnsafePointer<CChar>?) -> String {
        guard let bytes = unsafe bytes else { return "" }
        return unsafe String(cString: bytes)
    }

    @discardableResult
    private func check(_ result: Int32) throws(BusError) -> Int32 {
        guard result >= 0 else { throw .invalidArguments("a value has another type than the interface describes") }
        return result
    }

    /// Throws if a value does not fit into a message, which has at most 128 MiB, and 64 MiB in one array.
    private func checkAppended(_ result: Int32) throws(BusError) {
        guard result >= 0 else { throw .limitsExceeded("the reply is too large for the bus") }
    }

    // MARK: Reading

    /// Reads a string or a path.
    func readText(_ type: CChar = BusType.string) throws(BusError) -> String {
        var text: UnsafePointer<CChar>?
        // The text belongs to the message, and is copied.
        guard try check(unsafe sd_bus_message_read_basic(pointer, type, &text)) > 0 else { throw .invalidArguments("a value is missing") }
        return unsafe Self.text(text)
    }

    func readPath() throws(BusError) -> String { try readText(BusType.path) }

    func readTime() throws(BusError) -> UInt64 {
        var seconds: UInt64 = 0
        try check(unsafe sd_bus_message_read_basic(pointer, BusType.time, &seconds))
        return seconds
    }

    func readBoolean() throws(BusError) -> Bool {
        var value: Int32 = 0
        try check(unsafe sd_bus_message_read_basic(pointer, BusType.boolean, &value))
        return value != 0
    }

    /// Reads a file descriptor, which belongs to the message.
    func readDescriptor() throws(BusError) -> FileDescriptor {
        var number: Int32 = -1
        try check(unsafe sd_bus_message_read_basic(pointer, BusType.descriptor, &number))
        return FileDescriptor(rawValue: number)
    }

    func readBytes() throws(BusError) -> Data {
        var bytes: UnsafeRawPointer?
        var count = 0
        // The bytes belong to the message, and are copied.
        try check(unsafe sd_bus_message_read_array(pointer, BusType.byte, &bytes, &count))
        guard let bytes = unsafe bytes, count > 0 else { return Data() }
        return unsafe Data(bytes: bytes, count: count)
    }

    /// Enters a container, reads its content, and leaves it; returns false at the end of an array.
    @discardableResult
    func readContainer(_ type: CChar, _ contents: String?, _ body: () throws(BusError) -> Void) throws(BusError) -> Bool {
        guard try check(unsafe sd_bus_message_enter_container(pointer, type, contents)) > 0 else { return false }
        try body()
        try check(unsafe sd_bus_message_exit_container(pointer))
        return true
    }

    /// Begins to read from the first value again.
    func rewind() throws(BusError) { try check(unsafe sd_bus_message_rewind(pointer, 1)) }

    func readPaths() throws(BusError) -> [String] {
        var paths: [String] = []
        try readContainer(BusType.array, "o") { () throws(BusError) in
            while let path = try readNextPath() { paths.append(path) }
        }
        return paths
    }

    private func readNextPath() throws(BusError) -> String? {
        var text: UnsafePointer<CChar>?
        // As in `readText`; 0 is the end of the array.
        guard try check(unsafe sd_bus_message_read_basic(pointer, BusType.path, &text)) > 0 else { return nil }
        return unsafe Self.text(text)
    }

    func readAttributes() throws(BusError) -> ItemLookup {
        var attributes: [(String, String)] = []
        try readContainer(BusType.array, "{ss}") { () throws(BusError) in
            while try readContainer(BusType.entry, "ss", { () throws(BusError) in attributes.append((try readText(), try readText())) }) {}
        }
        return ItemLookup(attributes)
    }

    /// Reads a dictionary of properties: calls `body` for each one, which returns false if it has not read the value.
    func readProperties(_ body: (_ name: String, _ type: String) throws(BusError) -> Bool) throws(BusError) {
        try readContainer(BusType.array, "{sv}") { () throws(BusError) in
            while try readContainer(
                BusType.entry, "sv",
                { () throws(BusError) in
                    let name = try readText()
                    let type = try variantType()
                    try readContainer(BusType.variant, type) { () throws(BusError) in
                        if try !body(name, type) { try check(unsafe sd_bus_message_skip(pointer, type)) }
                    }
                })
            {}
        }
    }

    /// The type of the variant that comes next.
    func variantType() throws(BusError) -> String {
        var contents: UnsafePointer<CChar>?
        try check(unsafe sd_bus_message_peek_type(pointer, nil, &contents))
        return unsafe Self.text(contents)
    }

    func skipVariant() throws(BusError) { try check(unsafe sd_bus_message_skip(pointer, "v")) }

    /// Reads a secret.
    func readSecret() throws(BusError) -> TransferredSecret {
        var secret: TransferredSecret?
        try readContainer(BusType.structure, "oayays") { () throws(BusError) in
            secret = TransferredSecret(
                session: try readPath(), parameters: try readBytes(), value: try readBytes(), contentType: try readText())
        }
        guard let secret else { throw .invalidArguments("a secret is missing") }
        return secret
    }

    // MARK: Appending

    func append(_ text: String, _ type: CChar = BusType.string) throws(BusError) {
        // sd-bus copies the text.
        try checkAppended(unsafe text.withCString { unsafe sd_bus_message_append_basic(pointer, type, $0) })
    }

    func append(path: String) throws(BusError) { try append(path, BusType.path) }

    func append(number: UInt32) throws(BusError) {
        var number = number
        // sd-bus copies the value.
        try checkAppended(unsafe sd_bus_message_append_basic(pointer, BusType.number, &number))
    }

    func append(_ value: Bool) throws(BusError) {
        var value: Int32 = value ? 1 : 0
        try checkAppended(unsafe sd_bus_message_append_basic(pointer, BusType.boolean, &value))
    }

    func append(seconds: UInt64) throws(BusError) {
        var seconds = seconds
        try checkAppended(unsafe sd_bus_message_append_basic(pointer, BusType.time, &seconds))
    }

    func append(_ bytes: Data) throws(BusError) {
        // sd-bus copies the bytes.
        try checkAppended(
            unsafe bytes.withUnsafeBytes { unsafe sd_bus_message_append_array(pointer, BusType.byte, $0.baseAddress, $0.count) })
    }

    func appendContainer(_ type: CChar, _ contents: String, _ body: () throws(BusError) -> Void) throws(BusError) {
        try checkAppended(unsafe sd_bus_message_open_container(pointer, type, contents))
        try body()
        try checkAppended(unsafe sd_bus_message_close_container(pointer))
    }

    func append(paths: [String]) throws(BusError) {
        try appendContainer(BusType.array, "o") { () throws(BusError) in for path in paths { try append(path: path) } }
    }

    func append(_ attributes: [ItemAttribute]) throws(BusError) {
        try appendContainer(BusType.array, "{ss}") { () throws(BusError) in
            for attribute in attributes {
                try appendContainer(BusType.entry, "ss") { () throws(BusError) in
                    try append(attribute.name)
                    try append(attribute.value)
                }
            }
        }
    }

    func append(_ secret: TransferredSecret) throws(BusError) {
        // sd-bus wipes such a message when it frees it.
        try checkAppended(unsafe sd_bus_message_sensitive(pointer))
        try appendContainer(BusType.structure, "oayays") { () throws(BusError) in
            try append(path: secret.session)
            try append(secret.parameters)
            try append(secret.value)
            try append(secret.contentType)
        }
    }

    // MARK: Sending

    /// Replies to a call.
    func reply(_ body: (BusMessage) throws(BusError) -> Void = { _ in }) throws(BusError) {
        var made: OpaquePointer?
        try checkAppended(unsafe sd_bus_message_new_method_return(pointer, &made))
        try unsafe Self.send(made, body)
    }

    /// Appends the values of a new message, sends it, and releases it.
    @unsafe static func send(_ made: OpaquePointer?, _ body: (BusMessage) throws(BusError) -> Void) throws(BusError) {
        guard let made = unsafe made else { return }
        defer { _ = unsafe sd_bus_message_unref(made) }
        let message = unsafe BusMessage(made)
        try body(message)
        try message.checkAppended(unsafe sd_bus_send(nil, made, nil))
    }

    func setDestination(_ name: String) throws(BusError) { try checkAppended(unsafe sd_bus_message_set_destination(pointer, name)) }
}

/// A call that is answered after its handler has returned.
@safe final class PendingCall {
    // Retained by `init`, released by `deinit`.
    private let pointer: OpaquePointer

    init(_ message: BusMessage) { unsafe pointer = sd_bus_message_ref(message.pointer) }

    deinit { _ = unsafe sd_bus_message_unref(pointer) }

    var message: BusMessage { unsafe BusMessage(pointer) }

    /// Performs the call from its first value on, and replies what `body` throws.
    func perform(_ body: (BusMessage) throws(BusError) -> Void) {
        do throws(BusError) {
            try message.rewind()
            try body(message)
        } catch {
            var failure = unsafe sd_bus_error()
            defer { unsafe sd_bus_error_free(&failure) }
            _ = unsafe sd_bus_error_set(&failure, error.name, error.text)
            // A caller that has left the bus gets no reply.
            _ = unsafe sd_bus_reply_method_error(pointer, &failure)
        }
    }
}

/// A secret as it is transferred in a session.
struct TransferredSecret {
    let session: String
    let parameters: Data
    let value: Data
    let contentType: String
}
#endif
