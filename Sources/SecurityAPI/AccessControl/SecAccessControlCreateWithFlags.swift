// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

public import Foundation
internal import KeychainCore

/// Makes an access control object.
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - protection: One of the `kSecAttrAccessible…` values.
///   - flags: The constraints. `[]` asks nobody. `userPresence` goes with `applicationPassword` and `privateKeyUsage` only; `or` and
///     `and` exclude each other, and so do `biometryAny` and `biometryCurrentSet`. Two or more constraints are all needed, unless `or`
///     is among the flags.
///   - error: Where an error goes: `errSecParam` in `NSOSStatusErrorDomain`. The caller owns it (`takeRetainedValue()`).
/// - Returns: The object, nil after an error.
public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFString, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? {
    let failure: KeychainFailure
    do throws(KeychainFailure) {
        guard let accessibility = Accessibility(rawValue: protection) else {
            throw KeychainFailure(.parameter, "the protection is not one of the kSecAttrAccessible values")
        }
        return try SecAccessControl(flags.accessControl(accessibility))
    } catch let caught {
        failure = caught
    }
    // The pointer is the caller's, and the reference it receives is counted: both are the contract of Apple's function.
    unsafe error?.pointee = Unmanaged.passRetained(NSError(failure))
    return nil
}

/// Makes an access control object, as the function above, from a protection class given as an object
/// (`kSecAttrAccessibleWhenUnlocked as CFTypeRef`).
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - protection: One of the `kSecAttrAccessible…` values. An object that is no string is `errSecParam`.
///   - flags: The constraints.
///   - error: Where an error goes. The caller owns it.
/// - Returns: The object, nil after an error.
public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? {
    // No protection class is the empty string, so whatever is no string is refused like an unknown one.
    unsafe SecAccessControlCreateWithFlags(allocator, protection as? String ?? "", flags, error)
}
