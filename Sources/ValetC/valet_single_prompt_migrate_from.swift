// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Valet

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

#if !os(tvOS) && !os(watchOS)

@c @implementation
package func valet_single_prompt_migrate_matching(
    _ destination: OpaquePointer?, _ query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ removeOnCompletion: Bool
) -> valet_status {
    unsafe Call<SinglePromptSecureEnclaveValet>.migrate(destination, matching: query, queryCount, removeOnCompletion)
}

@c @implementation
package func valet_single_prompt_migrate_from(
    _ destination: OpaquePointer?, _ source: OpaquePointer?, _ removeOnCompletion: Bool
) -> valet_status {
    unsafe Call<SinglePromptSecureEnclaveValet>.migrate(destination, from: source, removeOnCompletion)
}

#endif
