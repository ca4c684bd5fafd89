// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Foundation
internal import Valet

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

@c @implementation
package func valet_migrate_matching(
    _ destination: OpaquePointer?, _ query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ removeOnCompletion: Bool
) -> valet_status {
    unsafe Call<Valet>.migrate(destination, matching: query, queryCount, removeOnCompletion)
}

@c @implementation
package func valet_migrate_from(_ destination: OpaquePointer?, _ source: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status {
    unsafe Call<Valet>.migrate(destination, from: source, removeOnCompletion)
}

@c @implementation
package func valet_migrate_matching_with_map(
    _ destination: OpaquePointer?, _ query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ map: valet_compact_map?,
    _ context: UnsafeMutableRawPointer?
) -> valet_status {
    statusAnswer {
        guard let map = unsafe map else { throw CallFailure(valet_error_null_argument) }
        try unsafe Handle.object(destination, as: Valet.self).migrateObjects(matching: queryDictionary(query, queryCount)) {
            try unsafe MigrationOutput.map($0, map, context)
        }
    }
}

@c @implementation
package func valet_migrate_from_with_map(
    _ destination: OpaquePointer?, _ source: OpaquePointer?, _ map: valet_compact_map?, _ context: UnsafeMutableRawPointer?
) -> valet_status {
    statusAnswer {
        guard let map = unsafe map else { throw CallFailure(valet_error_null_argument) }
        try unsafe Handle.object(destination, as: Valet.self).migrateObjects(from: Handle.object(source, as: Valet.self)) {
            try unsafe MigrationOutput.map($0, map, context)
        }
    }
}

@c @implementation
package func valet_migrate_from_always_accessible(_ handle: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status {
    statusAnswer {
        try unsafe Handle.object(handle, as: Valet.self).migrateObjectsFromAlwaysAccessibleValet(
            removeOnCompletion: removeOnCompletion)
    }
}

@c @implementation
package func valet_migrate_from_always_accessible_this_device_only(_ handle: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status {
    statusAnswer {
        try unsafe Handle.object(handle, as: Valet.self).migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValet(
            removeOnCompletion: removeOnCompletion)
    }
}

@c @implementation
package func valet_migrate_from_pre_catalina(_ handle: OpaquePointer?) -> valet_status {
    statusAnswer { try unsafe Handle.object(handle, as: Valet.self).migrateObjectsFromPreCatalina() }
}

@c @implementation
package func valet_output_set(
    _ output: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
) -> valet_status {
    statusAnswer {
        try unsafe Handle.object(output, as: MigrationOutput.self).pair = MigratableKeyValuePair(
            key: Input.text(key, keyLength), value: Data(Input.bytes(value, valueLength)))
    }
}
