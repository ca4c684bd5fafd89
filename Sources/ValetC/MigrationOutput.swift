// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Foundation
internal import Valet

/// What a callback wants to be stored: the object behind a `valet_output`.
final class MigrationOutput {
    var pair: MigratableKeyValuePair<String>?

    /// Asks a callback what becomes of a pair.
    ///
    /// - Throws: What the callback answered, if it was not success.
    static func map(
        _ pair: MigratableKeyValuePair<AnyHashable>, _ callback: valet_compact_map, _ context: UnsafeMutableRawPointer?
    ) throws(CallFailure) -> MigratableKeyValuePair<String>? {
        let output = MigrationOutput()
        let status = try unsafe withPair(pair) { lent in
            // The output lives until the callback has returned.
            withExtendedLifetime(output) {
                unsafe callback(context, lent, OpaquePointer(Unmanaged.passUnretained(output).toOpaque()))
            }
        }
        guard status == valet_status(valet_success) else { throw CallFailure(status: status) }
        return output.pair
    }

    /// Lends a pair to C.
    private static func withPair(
        _ pair: MigratableKeyValuePair<AnyHashable>, _ body: (UnsafePointer<valet_pair>) -> valet_status
    ) throws(CallFailure) -> valet_status {
        var lent = unsafe valet_pair()
        // The pointers in `lent` are used within the closures that keep alive what they point to.
        func call() -> valet_status {
            unsafe pair.value.withUnsafeBytes { bytes in
                unsafe lent.value = bytes.isEmpty ? nil : bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe lent.value_length = bytes.count
                return unsafe withUnsafePointer(to: lent) { unsafe body($0) }
            }
        }
        switch pair.key.base {
        case let text as String:
            unsafe lent.key_type = valet_value_type(valet_value_text)
            unsafe lent.key_length = text.utf8.count
            return unsafe Output.withNULBehind(text) { characters in
                unsafe lent.key = UnsafeRawPointer(characters)
                return call()
            }
        case let data as Data:
            unsafe lent.key_type = valet_value_type(valet_value_bytes)
            unsafe lent.key_length = data.count
            return unsafe data.withUnsafeBytes { bytes in
                unsafe lent.key = bytes.baseAddress
                return call()
            }
        case let number as NSNumber:
            unsafe lent.key_type = valet_value_type(valet_value_number)
            unsafe lent.key_number = number.int64Value
            return call()
        case let number as any BinaryInteger:
            guard let exact = Int64(exactly: number) else { throw CallFailure(valet_error_key_to_migrate_invalid) }
            unsafe lent.key_type = valet_value_type(valet_value_number)
            unsafe lent.key_number = exact
            return call()
        default: throw CallFailure(valet_error_key_to_migrate_invalid)
        }
    }
}
