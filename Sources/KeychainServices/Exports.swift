// SPDX-License-Identifier: Apache-2.0

// Keychain Services come from Apple's frameworks on Apple platforms, and from SecurityAPI elsewhere.

#if canImport(Security)
@_exported public import Security
#if canImport(LocalAuthentication)
@_exported public import LocalAuthentication
#endif
#else
@_exported public import SecurityAPI
#endif
