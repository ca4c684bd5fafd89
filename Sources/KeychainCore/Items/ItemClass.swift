// SPDX-License-Identifier: Apache-2.0

/// The kind of an item.
///
/// The raw value is Apple's, and it begins every persistent reference.
package enum ItemClass: String, Sendable, CaseIterable {
    case genericPassword = "genp"
    case internetPassword = "inet"
    case certificate = "cert"
    case key = "keys"
    case identity = "idnt"

    /// The number that stands for the class on disk and in everything that is authenticated.
    package var code: UInt8 {
        switch self {
        case .genericPassword: 1
        case .internetPassword: 2
        case .certificate: 3
        case .key: 4
        case .identity: 5
        }
    }

    package init?(code: UInt8) {
        guard let match = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = match
    }

    /// Certificates, keys and identities are named, not yet stored.
    package var isPassword: Bool { self == .genericPassword || self == .internetPassword }
}
