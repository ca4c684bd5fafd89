// SPDX-License-Identifier: Apache-2.0
#if canImport(Darwin)
/// On Apple platforms the system synchronizes: iCloud Keychain has the items of iCloud valets.
@available(*, unavailable, message: "iCloud Keychain synchronizes on Apple platforms; use KeychainSync in `#if !canImport(Darwin)`")
public enum KeychainSync {}
#endif
