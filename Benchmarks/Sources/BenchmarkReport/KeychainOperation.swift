// SPDX-License-Identifier: Apache-2.0

/// What is done with a keychain.
///
/// A limit stands under the operation that it bounds: sealing under the writes, opening under the read.
package enum KeychainOperation: String, Codable, CaseIterable, Sendable {
    case get
    case contains
    case setNew
    case overwrite
    case remove
    case allKeys

    package var title: String {
        switch self {
        case .setNew: "set, new key"
        case .overwrite: "set, overwrite"
        case .allKeys: "all keys"
        case .get, .contains, .remove: rawValue
        }
    }
}
