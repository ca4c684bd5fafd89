// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Foundation
internal import Valet

/// The arguments of functions that create a valet.
enum CArguments {
    static func identifier(_ text: UnsafePointer<CChar>?, _ length: Int) throws(StatusError) -> Identifier {
        // valet.h states the requirements for the pointer, here and below.
        guard let identifier = try unsafe optionalIdentifier(text, length) else { throw StatusError(valet_error_empty_identifier) }
        return identifier
    }

    static func optionalIdentifier(_ text: UnsafePointer<CChar>?, _ length: Int) throws(StatusError) -> Identifier? {
        Identifier(nonEmpty: try unsafe CInput.text(text, length))
    }

    static func group(
        _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
        _ groupLength: Int
    ) throws(StatusError) -> SharedGroupIdentifier {
        let prefix = try unsafe CInput.text(prefix, prefixLength)
        let group = try unsafe CInput.text(group, groupLength)
        guard !group.isEmpty else { throw StatusError(valet_error_empty_identifier) }
        switch Int(prefixKind) {
        case valet_group_prefix_app_id:
            guard let shared = SharedGroupIdentifier(appIDPrefix: prefix, nonEmptyGroup: group) else {
                throw StatusError(valet_error_empty_identifier)
            }
            return shared
        case valet_group_prefix_application_group:
            guard let shared = SharedGroupIdentifier(groupPrefix: prefix, nonEmptyGroup: group) else {
                throw StatusError(valet_error_invalid_group_prefix)
            }
            return shared
        default: throw StatusError(valet_error_unknown_constant)
        }
    }

    // The constants of C equal the raw values of the Swift enumerations.

    static func accessibility(_ number: valet_accessibility) throws(StatusError) -> Accessibility {
        guard let accessibility = Accessibility(rawValue: Int(number)) else { throw StatusError(valet_error_unknown_constant) }
        return accessibility
    }

    static func cloudAccessibility(_ number: valet_cloud_accessibility) throws(StatusError) -> CloudAccessibility {
        guard let accessibility = CloudAccessibility(rawValue: Int(number)) else { throw StatusError(valet_error_unknown_constant) }
        return accessibility
    }

    static func accessControl(_ number: valet_access_control) throws(StatusError) -> SecureEnclaveAccessControl {
        guard let control = SecureEnclaveAccessControl(rawValue: Int(number)) else { throw StatusError(valet_error_unknown_constant) }
        return control
    }
}

/// Arguments that C passes as a pointer and a length.
///
/// The caller guarantees that the pointer refers to as many bytes as the length says. `size_t` is unsigned and `Int` is signed: a length
/// of more than half the address space is negative here, and `valet_nul_terminated` is -1.
enum CInput {
    private static let nulTerminated = -1

    /// Any bytes.
    static func bytes(_ pointer: UnsafeRawPointer?, _ length: Int) throws(StatusError) -> UnsafeRawBufferPointer {
        guard length >= 0 else { throw StatusError(valet_error_invalid_length) }
        guard unsafe pointer != nil || length == 0 else { throw StatusError(valet_error_null_argument) }
        return unsafe UnsafeRawBufferPointer(start: pointer, count: length)
    }

    /// Bytes that are valid UTF-8.
    static func utf8(_ pointer: UnsafePointer<CChar>?, _ length: Int) throws(StatusError) -> UnsafeRawBufferPointer {
        var length = length
        if length == nulTerminated {
            guard let pointer = unsafe pointer else { throw StatusError(valet_error_null_argument) }
            length = unsafe strlen(pointer)
        }
        let bytes = try unsafe bytes(pointer, length)
        guard unsafe isUTF8(bytes) else { throw StatusError(valet_error_not_utf8) }
        return unsafe bytes
    }

    /// Text: a key, an identifier, a prompt.
    static func text(_ pointer: UnsafePointer<CChar>?, _ length: Int) throws(StatusError) -> String {
        try unsafe String(decoding: utf8(pointer, length), as: UTF8.self)
    }

    /// Whether bytes are valid UTF-8.
    ///
    /// Makes no copy, because they may be a secret.
    static func isUTF8(_ bytes: some Sequence<UInt8>) -> Bool {
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid: continue
            case .emptyInput: return true
            case .error: return false
            }
        }
    }
}

/// Converts a list of entries to a query dictionary.
///
/// - Throws: `valet_error_invalid_query` for a duplicate name or a date that is not finite, and the statuses of invalid arguments.
func queryDictionary(_ entries: UnsafePointer<valet_query_entry>?, _ count: Int) throws(StatusError) -> [String: AnyHashable] {
    guard count >= 0 else { throw StatusError(valet_error_invalid_length) }
    guard unsafe entries != nil || count == 0 else { throw StatusError(valet_error_null_argument) }
    var query: [String: AnyHashable] = [:]
    // The caller guarantees `count` entries.
    for index in 0..<count {
        guard let entry = unsafe entries?[index] else { throw StatusError(valet_error_null_argument) }
        let name = try unsafe CInput.text(entry.name, -1)
        guard query[name] == nil else { throw StatusError(valet_error_invalid_query) }
        query[name] = try unsafe queryValue(entry)
    }
    return query
}

private func queryValue(_ entry: valet_query_entry) throws(StatusError) -> AnyHashable {
    switch unsafe Int(entry.type) {
    case valet_value_text: return try unsafe CInput.text(entry.bytes?.assumingMemoryBound(to: CChar.self), entry.length)
    case valet_value_bytes: return try unsafe Data(CInput.bytes(entry.bytes, entry.length))
    case valet_value_number:
        guard let number = unsafe Int(exactly: entry.number) else { throw StatusError(valet_error_invalid_query) }
        return number
    case valet_value_boolean: return unsafe entry.number != 0
    case valet_value_date:
        guard unsafe entry.seconds.isFinite else { throw StatusError(valet_error_invalid_query) }
        return unsafe Date(timeIntervalSince1970: entry.seconds)
    default: throw StatusError(valet_error_unknown_constant)
    }
}
