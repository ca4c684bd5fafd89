// SPDX-License-Identifier: Apache-2.0

// How a call behaves towards the person (Apple: "Search result and authentication keys").

/// Work on these items alone.
///
/// Not accepted for passwords: `errSecParam`.
public let kSecUseItemList: CFString = "u_ItemList"
/// What the person is told when asked, in the program's own words: a string.
///
/// It comes before ``LAContext/localizedReason``, and is shown beside who asks and what for.
public let kSecUseOperationPrompt: CFString = "u_OpPrompt"
/// Fail rather than ask the person: a Boolean.
///
/// The older form of `kSecUseAuthenticationUIFail`, looked at only where `kSecUseAuthenticationUI` is absent.
public let kSecUseNoAuthenticationUI: CFString = "u_NoAuthUI"
/// Whether the person may be asked: one of the three values below.
///
/// Anything else counts as `kSecUseAuthenticationUIAllow`.
public let kSecUseAuthenticationUI: CFString = "u_AuthUI"
/// A value of `kSecUseAuthenticationUI`: ask the person if need be.
///
/// The default.
public let kSecUseAuthenticationUIAllow: CFString = "u_AuthUIA"
/// A value of `kSecUseAuthenticationUI`: answer `errSecInteractionNotAllowed` rather than ask.
public let kSecUseAuthenticationUIFail: CFString = "u_AuthUIF"
/// A value of `kSecUseAuthenticationUI`: leave out items with access control.
///
/// Searches only.
public let kSecUseAuthenticationUISkip: CFString = "u_AuthUIS"
/// The ``LAContext`` that satisfies access control in the place of a question, and carries what an answer to this call releases.
///
/// An invalidated one is `errSecAuthFailed`. A value of another type counts as absent.
public let kSecUseAuthenticationContext: CFString = "u_AuthCtx"
/// Use the data protection keychain (macOS).
///
/// Without effect: there is no other.
public let kSecUseDataProtectionKeychain: CFString = "nleg"
/// Use the keychain shared by all people who use a device (tvOS).
///
/// Accepted and without effect.
public let kSecUseUserIndependentKeychain: CFString = "u_UserIndependentKeychain"
/// The password in a shared web credential dictionary.
///
/// Not an attribute of any item.
public let kSecSharedPassword: CFString = "spwd"
