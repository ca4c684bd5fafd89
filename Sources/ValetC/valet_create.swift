// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Valet

// Each function is declared in valet.h, which says what the pointers must be; the compiler holds the signatures against it.

@c @implementation
package func valet_create(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe Valet.valet(
            with: Argument.identifier(identifier, identifierLength), accessibility: Argument.accessibility(accessibility))
    }
}

@c @implementation
package func valet_create_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe Valet.sharedGroupValet(
            with: Argument.group(prefixKind, prefix, prefixLength, group, groupLength),
            identifier: Argument.optionalIdentifier(identifier, identifierLength), accessibility: Argument.accessibility(accessibility))
    }
}

@c @implementation
package func valet_create_explicit(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe Valet.valet(
            withExplicitlySet: Argument.identifier(identifier, identifierLength), accessibility: Argument.accessibility(accessibility))
    }
}

@c @implementation
package func valet_create_explicit_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ accessibility: valet_accessibility, _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe Valet.sharedGroupValet(
            withExplicitlySet: Argument.group(prefixKind, prefix, prefixLength, group, groupLength),
            accessibility: Argument.accessibility(accessibility))
    }
}

@c @implementation
package func valet_create_icloud(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_cloud_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe Valet.iCloudValet(
            with: Argument.identifier(identifier, identifierLength), accessibility: Argument.cloudAccessibility(accessibility))
    }
}

@c @implementation
package func valet_create_icloud_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_cloud_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe Valet.iCloudSharedGroupValet(
            with: Argument.group(prefixKind, prefix, prefixLength, group, groupLength),
            identifier: Argument.optionalIdentifier(identifier, identifierLength), accessibility: Argument.cloudAccessibility(accessibility)
        )
    }
}

@c @implementation
package func valet_create_icloud_explicit(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_cloud_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe Valet.iCloudValet(
            withExplicitlySet: Argument.identifier(identifier, identifierLength), accessibility: Argument.cloudAccessibility(accessibility))
    }
}

@c @implementation
package func valet_create_icloud_explicit_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ accessibility: valet_cloud_accessibility, _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.give(to: result) {
        try unsafe Valet.iCloudSharedGroupValet(
            withExplicitlySet: Argument.group(prefixKind, prefix, prefixLength, group, groupLength),
            accessibility: Argument.cloudAccessibility(accessibility))
    }
}
