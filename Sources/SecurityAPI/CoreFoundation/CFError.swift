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

/// What else an error says.
///
/// - Parameter error: The error. Nil says nothing.
/// - Returns: The user information by key, empty if there is none. Not a `CFDictionary`, because every caller casts the result
///   (`as? [String: Any]`), which would do nothing here and be warned of.
public func CFErrorCopyUserInfo(_ error: CFError?) -> NSDictionary! {
    (error?.userInfo ?? [:]) as NSDictionary
}

/// The error as a sentence for a person to read.
///
/// - Parameter error: The error. Nil is the empty sentence.
/// - Returns: The sentence.
public func CFErrorCopyDescription(_ error: CFError?) -> CFString! {
    error?.localizedDescription ?? ""
}

/// The error domain of `OSStatus` codes: the one in which `SecAccessControlCreateWithFlags` reports.
public let kCFErrorDomainOSStatus: CFErrorDomain! = NSOSStatusErrorDomain

extension NSError {
    /// A failure as Apple's functions report one: its status in the domain of `OSStatus` codes.
    convenience init(_ failure: KeychainFailure) {
        self.init(
            domain: NSOSStatusErrorDomain, code: Int(failure.status.rawValue), userInfo: [NSLocalizedDescriptionKey: failure.reason])
    }
}
