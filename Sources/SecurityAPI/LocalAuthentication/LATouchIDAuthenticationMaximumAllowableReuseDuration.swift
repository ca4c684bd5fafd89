// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The name is Apple's.

public import Foundation

/// The longest time, in seconds, that ``LAContext/touchIDAuthenticationAllowableReuseDuration`` can stand for: 300.
public let LATouchIDAuthenticationMaximumAllowableReuseDuration: TimeInterval = 300
