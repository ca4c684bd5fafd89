// SPDX-License-Identifier: Apache-2.0

/// Which attributes of an item are wanted.
///
/// All are opened and parsed, so that damage shows; what is not wanted is not kept. A listing of 100,000 keys keeps one attribute of a dozen.
package enum AttributeSelection: Sendable, Equatable {
    case all
    case none
    case only(Attribute)

    func contains(_ attribute: Attribute) -> Bool {
        switch self {
        case .all: true
        case .none: false
        case .only(let wanted): attribute == wanted
        }
    }
}
