// SPDX-License-Identifier: Apache-2.0

// As Apple's framework does.
@_exported public import Foundation
@_exported public import SecurityAPI

/// Exists in this module alone: whoever can name it reached it by importing LocalAuthentication.
public let localAuthenticationStandsIn = true
