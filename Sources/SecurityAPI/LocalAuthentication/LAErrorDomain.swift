// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The name is Apple's.

/// The domain of the errors of LocalAuthentication.
public let LAErrorDomain: String = "com.apple.LocalAuthentication"
