// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import KeychainCore

extension NSError {
    /// A failure as Apple's functions report one: its status in the domain of `OSStatus` codes.
    convenience init(_ failure: KeychainFailure) {
        self.init(
            domain: NSOSStatusErrorDomain, code: Int(failure.status.rawValue), userInfo: [NSLocalizedDescriptionKey: failure.reason])
    }
}
