// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

package import CValet
internal import Foundation
internal import Valet

// valet.h declares each function and the requirements for its pointers; the compiler checks the signatures against it.

@c @implementation
package func valet_create(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe Valet.valet(
            with: CArguments.identifier(identifier, identifierLength), accessibility: CArguments.accessibility(accessibility))
    }
}

@c @implementation
package func valet_create_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe Valet.sharedGroupValet(
            with: CArguments.group(prefixKind, prefix, prefixLength, group, groupLength),
            identifier: CArguments.optionalIdentifier(identifier, identifierLength), accessibility: CArguments.accessibility(accessibility))
    }
}

@c @implementation
package func valet_create_explicit(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe Valet.valet(
            withExplicitlySet: CArguments.identifier(identifier, identifierLength), accessibility: CArguments.accessibility(accessibility))
    }
}

@c @implementation
package func valet_create_explicit_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ accessibility: valet_accessibility, _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe Valet.sharedGroupValet(
            withExplicitlySet: CArguments.group(prefixKind, prefix, prefixLength, group, groupLength),
            accessibility: CArguments.accessibility(accessibility))
    }
}

@c @implementation
package func valet_create_icloud(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_cloud_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe Valet.iCloudValet(
            with: CArguments.identifier(identifier, identifierLength), accessibility: CArguments.cloudAccessibility(accessibility))
    }
}

@c @implementation
package func valet_create_icloud_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_cloud_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe Valet.iCloudSharedGroupValet(
            with: CArguments.group(prefixKind, prefix, prefixLength, group, groupLength),
            identifier: CArguments.optionalIdentifier(identifier, identifierLength),
            accessibility: CArguments.cloudAccessibility(accessibility)
        )
    }
}

@c @implementation
package func valet_create_icloud_explicit(
    _ identifier: UnsafePointer<CChar>?, _ identifierLength: Int, _ accessibility: valet_cloud_accessibility,
    _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe Valet.iCloudValet(
            withExplicitlySet: CArguments.identifier(identifier, identifierLength),
            accessibility: CArguments.cloudAccessibility(accessibility))
    }
}

@c @implementation
package func valet_create_icloud_explicit_shared(
    _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
    _ groupLength: Int, _ accessibility: valet_cloud_accessibility, _ result: UnsafeMutablePointer<OpaquePointer?>?
) -> valet_status {
    unsafe Handle.create(in: result) {
        try unsafe Valet.iCloudSharedGroupValet(
            withExplicitlySet: CArguments.group(prefixKind, prefix, prefixLength, group, groupLength),
            accessibility: CArguments.cloudAccessibility(accessibility))
    }
}

@c @implementation
package func valet_can_access(_ handle: OpaquePointer?) -> Bool {
    unsafe ValetCall<Valet>.canAccess(handle)
}

@c @implementation
package func valet_set(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
) -> valet_status {
    unsafe ValetCall<Valet>.set(handle, key, keyLength, value, valueLength)
}

@c @implementation
package func valet_set_string(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafePointer<CChar>?, _ stringLength: Int
) -> valet_status {
    unsafe ValetCall<Valet>.setString(handle, key, keyLength, string, stringLength)
}

@c @implementation
package func valet_contains(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ result: UnsafeMutablePointer<Bool>?
) -> valet_status {
    unsafe ValetCall<Valet>.contains(handle, key, keyLength, result)
}

@c @implementation
package func valet_remove(_ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int) -> valet_status {
    unsafe ValetCall<Valet>.remove(handle, key, keyLength)
}

@c @implementation
package func valet_remove_all(_ handle: OpaquePointer?) -> valet_status {
    unsafe ValetCall<Valet>.removeAll(handle)
}

@c @implementation
package func valet_get(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?,
    _ valueLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe CResult.returnBytes(value, valueLength) {
        try unsafe Handle.object(handle, as: Valet.self).object(forKey: CInput.text(key, keyLength))
    }
}

@c @implementation
package func valet_get_string(
    _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
    _ stringLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe CResult.returnText(string, stringLength) {
        try unsafe Handle.object(handle, as: Valet.self).object(forKey: CInput.text(key, keyLength))
    }
}

@c @implementation
package func valet_all_keys(_ handle: OpaquePointer?, _ callback: valet_key_callback?, _ context: UnsafeMutableRawPointer?) -> valet_status
{
    unsafe CResult.enumerateKeys(callback, context) {
        try unsafe Handle.object(handle, as: Valet.self).keyList().keys
    }
}

@c @implementation
package func valet_free(_ handle: OpaquePointer?) {
    unsafe Handle.free(handle, as: Valet.self)
}

@c @implementation
package func valet_is_equal(_ first: OpaquePointer?, _ second: OpaquePointer?) -> Bool {
    unsafe ValetCall<Valet>.isEqual(first, second)
}

@c @implementation
package func valet_hash(_ handle: OpaquePointer?) -> UInt64 {
    unsafe ValetCall<Valet>.hash(handle)
}

@c @implementation
package func valet_describe(
    _ handle: OpaquePointer?, _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ textLength: UnsafeMutablePointer<Int>?
) -> valet_status {
    unsafe ValetCall<Valet>.describe(handle, text, textLength)
}
