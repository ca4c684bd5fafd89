// SPDX-License-Identifier: Apache-2.0

/// An operation on a keychain, or the limit of one.
///
/// A limit is listed under the operation that it bounds: encryption under the writes, decryption under the read.
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
