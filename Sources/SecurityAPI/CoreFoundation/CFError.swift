// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase, NeverUseImplicitlyUnwrappedOptionals
// The names are Apple's, and so are the implicitly unwrapped results.

public import Foundation
internal import KeychainCore

/// The domain of an error.
///
/// - Parameter error: The error. Nil has the empty domain.
/// - Returns: The domain, for example `NSOSStatusErrorDomain`.
public func CFErrorGetDomain(_ error: CFError?) -> CFErrorDomain! {
    error?.domain ?? ""
}

/// The code of an error within its domain.
///
/// - Parameter error: The error. Nil has code 0.
/// - Returns: The code; in `NSOSStatusErrorDomain` it is an `OSStatus`.
public func CFErrorGetCode(_ error: CFError?) -> CFIndex {
    error?.code ?? 0
}

/// Returns the user info of an error.
///
/// - Parameter error: The error. For nil the result is empty.
/// - Returns: The user info. Its type is not `CFDictionary` because callers cast the result (`as? [String: Any]`); on this platform such a
///   cast would be redundant and a warning.
public func CFErrorCopyUserInfo(_ error: CFError?) -> NSDictionary! {
    (error?.userInfo ?? [:]) as NSDictionary
}

/// Returns a description of an error for people.
///
/// - Parameter error: The error. Nil is the empty sentence.
/// - Returns: The sentence.
public func CFErrorCopyDescription(_ error: CFError?) -> CFString! {
    error?.localizedDescription ?? ""
}

/// The error domain of `OSStatus` codes: the one in which `SecAccessControlCreateWithFlags` reports.
public let kCFErrorDomainOSStatus: CFErrorDomain! = NSOSStatusErrorDomain

extension NSError {
    /// The failure as an `NSError`: its status in the domain of `OSStatus` codes.
    convenience init(_ failure: KeychainFailure) {
        self.init(
            domain: NSOSStatusErrorDomain, code: Int(failure.status.rawValue), userInfo: [NSLocalizedDescriptionKey: failure.reason])
    }
}
