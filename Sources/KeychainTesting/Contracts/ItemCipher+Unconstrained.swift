// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import Foundation
package import KeychainCore

/// Rows without access control, for which nothing but the class key is needed.
extension ItemCipher {
    package func seal(
        _ attributes: ItemAttributes, secret: Data?, header: RowHeader, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> SealedRow {
        try seal(attributes, secret: secret, header: header, constraint: nil, with: ConstraintKeys(), under: classKey)
    }

    package func open(
        _ row: SealedRow, includingSecret: Bool, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> OpenedRow {
        try open(row, includingSecret: includingSecret, with: ConstraintKeys(), under: classKey)
    }

    package func openSecret(of row: SealedRow, under classKey: borrowing ClassKey) throws(KeychainFailure) -> Data? {
        try openSecret(of: row, with: ConstraintKeys(), under: classKey)
    }
}
#endif
