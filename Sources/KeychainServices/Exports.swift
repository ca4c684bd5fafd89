// SPDX-License-Identifier: Apache-2.0

// Keychain Services come from Apple's frameworks on Apple platforms, and from SecurityAPI elsewhere.
//
// The condition is not `canImport(Security)`: on Linux all modules of a build share one folder, so it would be true as soon as this
// package's own module of that name is built. .ci/apple-branch compiles this branch on Linux and sets the flag.

#if canImport(Darwin) || KEYCHAIN_APPLE_BRANCH
@_exported public import Security
#if canImport(LocalAuthentication)
@_exported public import LocalAuthentication
#endif

/// False: Apple's frameworks do not support processes that were forked without exec.
package var isForkedChild: Bool { false }
#else
@_exported public import SecurityAPI
#endif
