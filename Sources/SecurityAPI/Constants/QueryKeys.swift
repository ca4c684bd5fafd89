// SPDX-License-Identifier: Apache-2.0

// The item classes of a SecItem dictionary (Apple: "Item class keys and values").

/// The class of the item: one of the `kSecClass…` values.
public let kSecClass: CFString = "class"
/// A password that belongs to a service and an account.
public let kSecClassGenericPassword: CFString = "genp"
/// A password that belongs to a server, a port, a protocol and an account.
public let kSecClassInternetPassword: CFString = "inet"
/// A certificate.
///
/// The SecItem functions return `errSecUnimplemented` for it.
public let kSecClassCertificate: CFString = "cert"
/// A cryptographic key.
///
/// The SecItem functions return `errSecUnimplemented` for it.
public let kSecClassKey: CFString = "keys"
/// A certificate with its private key.
///
/// The SecItem functions return `errSecUnimplemented` for it.
public let kSecClassIdentity: CFString = "idnt"

// The keys that narrow or limit a search (Apple: "Search match keys and values"). Only a search may have them.

/// Find certificates and identities that satisfy a policy.
public let kSecMatchPolicy: CFString = "m_Policy"
/// Search only these items.
///
/// Accepted and without effect.
public let kSecMatchItemList: CFString = "m_ItemList"
/// Search only these keychains (macOS).
///
/// Accepted and without effect: there is one keychain.
public let kSecMatchSearchList: CFString = "m_SearchList"
/// Find certificates and identities with one of these issuers in their chain.
public let kSecMatchIssuers: CFString = "m_Issuers"
/// Find certificates and identities with this mail address, or with none.
public let kSecMatchEmailAddressIfPresent: CFString = "m_EmailAddressIfPresent"
/// Find certificates and identities whose subject contains this string.
///
/// Without effect on passwords.
public let kSecMatchSubjectContains: CFString = "m_SubjectContains"
/// Find internet passwords whose server is this host or a host below it: a string.
public let kSecMatchHostOrSubdomainOfHost: CFString = "m_HostOrSubdomainOfHost"
/// Compare without regard to case.
///
/// Accepted and without effect: passwords are compared byte for byte.
public let kSecMatchCaseInsensitive: CFString = "m_CaseInsensitive"
/// Find only certificates that lead to a trusted root.
public let kSecMatchTrustedOnly: CFString = "m_TrustedOnly"
/// Find only certificates that are valid on a date.
public let kSecMatchValidOnDate: CFString = "m_ValidOnDate"
/// Fail if a matching item cannot be read, even if others can: a Boolean, false by default.
///
/// Not part of Apple's API. A search for several items otherwise leaves out unreadable ones, which a migration must not.
package let kSecMatchFailsIfUnreadable: CFString = "m_FailsIfUnreadable"
/// How many items to find: `kSecMatchLimitOne` (the default), `kSecMatchLimitAll` or a number.
public let kSecMatchLimit: CFString = "m_Limit"
/// A value of `kSecMatchLimit`: the first item; the result is not an array.
public let kSecMatchLimitOne: CFString = "m_LimitOne"
/// A value of `kSecMatchLimit`: every item; the result is an array.
public let kSecMatchLimitAll: CFString = "m_LimitAll"

// The results of a call, and the values of an item
// (Apple: "Item return result keys" and "Item type value keys").

// MARK: Results

/// Return the secret of the item: a Boolean.
public let kSecReturnData: CFString = "r_Data"
/// Return a dictionary of the item's attributes: a Boolean.
public let kSecReturnAttributes: CFString = "r_Attributes"
/// Return a reference to the item: a Boolean.
///
/// Passwords have none: the result is nil.
public let kSecReturnRef: CFString = "r_Ref"
/// Return a reference that can be stored and remains valid after updates of the item: a Boolean.
public let kSecReturnPersistentRef: CFString = "r_PersistentRef"

// MARK: Values

/// The secret of the item: data.
public let kSecValueData: CFString = "v_Data"
/// A reference to an item.
///
/// Passwords have none: `errSecParam`.
public let kSecValueRef: CFString = "v_Ref"
/// A persistent reference to an item, from `kSecReturnPersistentRef`: data.
public let kSecValuePersistentRef: CFString = "v_PersistentRef"

// The options for authenticating the user (Apple: "Search result and authentication keys").

/// Use only these items.
///
/// Not accepted for passwords: `errSecParam`.
public let kSecUseItemList: CFString = "u_ItemList"
/// The reason that a prompt shows: a string.
///
/// It overrides ``LAContext/localizedReason``. The prompt also shows the program and the operation.
public let kSecUseOperationPrompt: CFString = "u_OpPrompt"
/// Fail instead of prompting the user: a Boolean.
///
/// The older form of `kSecUseAuthenticationUIFail`, which has an effect only without `kSecUseAuthenticationUI`.
public let kSecUseNoAuthenticationUI: CFString = "u_NoAuthUI"
/// Whether the user may be prompted: one of the three values below.
///
/// Anything else counts as `kSecUseAuthenticationUIAllow`.
public let kSecUseAuthenticationUI: CFString = "u_AuthUI"
/// A value of `kSecUseAuthenticationUI`: prompt the user if necessary.
///
/// The default.
public let kSecUseAuthenticationUIAllow: CFString = "u_AuthUIA"
/// A value of `kSecUseAuthenticationUI`: return `errSecInteractionNotAllowed` instead of prompting.
public let kSecUseAuthenticationUIFail: CFString = "u_AuthUIF"
/// A value of `kSecUseAuthenticationUI`: leave out items with access control.
///
/// Searches only.
public let kSecUseAuthenticationUISkip: CFString = "u_AuthUIS"
/// The ``LAContext`` that satisfies access control without a prompt if it holds the authentication, and receives that of a prompt.
///
/// For an invalidated context the status is `errSecAuthFailed`. A value of another type is ignored.
public let kSecUseAuthenticationContext: CFString = "u_AuthCtx"
/// Use the data protection keychain (macOS).
///
/// Has no effect: there is no other.
public let kSecUseDataProtectionKeychain: CFString = "nleg"
/// Use the keychain shared by all people who use a device (tvOS).
///
/// Accepted and without effect.
public let kSecUseUserIndependentKeychain: CFString = "u_UserIndependentKeychain"
/// The password in a shared web credential dictionary.
///
/// Not an attribute of any item.
public let kSecSharedPassword: CFString = "spwd"
