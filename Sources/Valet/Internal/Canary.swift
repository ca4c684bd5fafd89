// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// The item that shows whether the keychain can be used.
///
/// It is never shown, and never migrated.
enum Canary {
    static let key = "VAL_KeychainCanaryUsername"
    static let value = Data("VAL_KeychainCanaryPassword".utf8)
}
