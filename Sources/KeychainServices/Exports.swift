// SPDX-License-Identifier: Apache-2.0

// The one place where Apple's platforms and all others part: where Apple's frameworks are, this module is nothing but them.

#if canImport(Security)
@_exported public import Security
#if canImport(LocalAuthentication)
@_exported public import LocalAuthentication
#endif
#else
@_exported public import SecurityAPI
#endif
