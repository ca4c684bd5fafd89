// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Foundation
internal import Valet

// valet.h declares each function and the requirements for its pointers; the compiler checks the signatures against it.

@c @implementation
package func valet_migrate_matching(
    _ destination: OpaquePointer?, _ query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ removeOnCompletion: Bool
) -> valet_status {
    unsafe ValetCall<Valet>.migrate(destination, matching: query, queryCount, removeOnCompletion)
}

@c @implementation
package func valet_migrate_from(_ destination: OpaquePointer?, _ source: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status {
    unsafe ValetCall<Valet>.migrate(destination, from: source, removeOnCompletion)
}

@c @implementation
package func valet_migrate_matching_with_map(
    _ destination: OpaquePointer?, _ query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ map: valet_compact_map?,
    _ context: UnsafeMutableRawPointer?
) -> valet_status {
    status {
        guard let map = unsafe map else { throw StatusError(valet_error_null_argument) }
        try unsafe Handle.object(destination, as: Valet.self).migrateObjects(matching: queryDictionary(query, queryCount)) {
            try unsafe MigrationOutput.map($0, map, context)
        }
    }
}

@c @implementation
package func valet_migrate_from_with_map(
    _ destination: OpaquePointer?, _ source: OpaquePointer?, _ map: valet_compact_map?, _ context: UnsafeMutableRawPointer?
) -> valet_status {
    status {
        guard let map = unsafe map else { throw StatusError(valet_error_null_argument) }
        try unsafe Handle.object(destination, as: Valet.self).migrateObjects(from: Handle.object(source, as: Valet.self)) {
            try unsafe MigrationOutput.map($0, map, context)
        }
    }
}

@c @implementation
package func valet_migrate_from_always_accessible(_ handle: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status {
    status {
        try unsafe Handle.object(handle, as: Valet.self).migrateObjectsFromAlwaysAccessibleValet(
            removeOnCompletion: removeOnCompletion)
    }
}

@c @implementation
package func valet_migrate_from_always_accessible_this_device_only(_ handle: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status {
    status {
        try unsafe Handle.object(handle, as: Valet.self).migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValet(
            removeOnCompletion: removeOnCompletion)
    }
}

@c @implementation
package func valet_migrate_from_pre_catalina(_ handle: OpaquePointer?) -> valet_status {
    status { try unsafe Handle.object(handle, as: Valet.self).migrateObjectsFromPreCatalina() }
}

@c @implementation
package func valet_output_set(
    _ output: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
) -> valet_status {
    status {
        try unsafe Handle.object(output, as: MigrationOutput.self).pair = MigratableKeyValuePair(
            key: CInput.text(key, keyLength), value: Data(CInput.bytes(value, valueLength)))
    }
}

/// The object behind a `valet_output`: the pair that a callback wants to store.
final class MigrationOutput {
    var pair: MigratableKeyValuePair<String>?

    /// Calls the callback with a pair and returns the pair to store, or nil to skip the item.
    ///
    /// - Throws: The status that the callback returned, if it is not success.
    static func map(
        _ pair: MigratableKeyValuePair<AnyHashable>, _ callback: valet_compact_map, _ context: UnsafeMutableRawPointer?
    ) throws(StatusError) -> MigratableKeyValuePair<String>? {
        let output = MigrationOutput()
        let answer = try unsafe withPair(pair) { cPair in
            // The output lives until the callback has returned.
            withExtendedLifetime(output) {
                unsafe callback(context, cPair, OpaquePointer(Unmanaged.passUnretained(output).toOpaque()))
            }
        }
        guard answer == valet_status(valet_success) else { throw StatusError(status: answer) }
        return output.pair
    }

    /// Calls `body` with the pair as a C structure, which is valid during the call.
    private static func withPair(
        _ pair: MigratableKeyValuePair<AnyHashable>, _ body: (UnsafePointer<valet_pair>) -> valet_status
    ) throws(StatusError) -> valet_status {
        var cPair = unsafe valet_pair()
        // The pointers in `cPair` are used only within the closures that keep the bytes alive.
        func call() -> valet_status {
            unsafe pair.value.withUnsafeBytes { bytes in
                unsafe cPair.value = bytes.isEmpty ? nil : bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe cPair.value_length = bytes.count
                return unsafe withUnsafePointer(to: cPair) { unsafe body($0) }
            }
        }
        switch pair.key.base {
        case let text as String:
            unsafe cPair.key_type = valet_value_type(valet_value_text)
            unsafe cPair.key_length = text.utf8.count
            return unsafe CResult.withNULTerminated(text) { characters in
                unsafe cPair.key = UnsafeRawPointer(characters)
                return call()
            }
        case let data as Data:
            unsafe cPair.key_type = valet_value_type(valet_value_bytes)
            unsafe cPair.key_length = data.count
            return unsafe data.withUnsafeBytes { bytes in
                unsafe cPair.key = bytes.baseAddress
                return call()
            }
        case let number as NSNumber:
            unsafe cPair.key_type = valet_value_type(valet_value_number)
            unsafe cPair.key_number = number.int64Value
            return call()
        case let number as any BinaryInteger:
            guard let exact = Int64(exactly: number) else { throw StatusError(valet_error_key_to_migrate_invalid) }
            unsafe cPair.key_type = valet_value_type(valet_value_number)
            unsafe cPair.key_number = exact
            return call()
        default: throw StatusError(valet_error_key_to_migrate_invalid)
        }
    }
}
