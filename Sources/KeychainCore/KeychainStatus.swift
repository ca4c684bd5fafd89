// SPDX-License-Identifier: Apache-2.0

/// What became of a call: Apple's `OSStatus` codes under Swift names.
///
/// Open on purpose: a code that has no name here still travels unchanged.
/// Source: `SecBase.h`, "Security Framework Result Codes".
package struct KeychainStatus: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32

    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    package static let success = KeychainStatus(rawValue: 0)
    package static let unimplemented = KeychainStatus(rawValue: -4)
    package static let inputOutput = KeychainStatus(rawValue: -36)
    package static let parameter = KeychainStatus(rawValue: -50)
    package static let allocate = KeychainStatus(rawValue: -108)
    package static let userCanceled = KeychainStatus(rawValue: -128)
    package static let missingEntitlement = KeychainStatus(rawValue: -34018)
    package static let restrictedAPI = KeychainStatus(rawValue: -34020)
    package static let notAvailable = KeychainStatus(rawValue: -25291)
    package static let readOnly = KeychainStatus(rawValue: -25292)
    package static let authFailed = KeychainStatus(rawValue: -25293)
    package static let duplicateItem = KeychainStatus(rawValue: -25299)
    package static let itemNotFound = KeychainStatus(rawValue: -25300)
    package static let noSuchAttribute = KeychainStatus(rawValue: -25303)
    package static let noSuchClass = KeychainStatus(rawValue: -25306)
    package static let interactionNotAllowed = KeychainStatus(rawValue: -25308)
    package static let decode = KeychainStatus(rawValue: -26275)
    package static let `internal` = KeychainStatus(rawValue: -26276)
}
