// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Valet

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

@c @implementation
package func valet_enclave_migrate_matching(
    _ destination: OpaquePointer?, _ query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ removeOnCompletion: Bool
) -> valet_status {
    unsafe Call<SecureEnclaveValet>.migrate(destination, matching: query, queryCount, removeOnCompletion)
}

@c @implementation
package func valet_enclave_migrate_from(_ destination: OpaquePointer?, _ source: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status
{
    unsafe Call<SecureEnclaveValet>.migrate(destination, from: source, removeOnCompletion)
}

@c @implementation
package func valet_enclave_migrate_from_single_prompt(_ destination: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status {
    statusAnswer {
        try unsafe Handle.object(destination, as: SecureEnclaveValet.self).migrateObjectsFromSinglePromptSecureEnclaveValet(
            removeOnCompletion: removeOnCompletion)
    }
}
