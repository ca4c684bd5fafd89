// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

extension ItemQuery {
    /// Which items a dictionary is about.
    init(_ dictionary: ItemDictionary) throws(KeychainFailure) {
        self.init(itemClass: dictionary.itemClass, attributes: dictionary.attributes)
        if let accessibility = dictionary.accessibility {
            attributes[.accessible] = .string(accessibility.rawValue)
        }
        twin =
            switch dictionary.synchronizable {
            case .yes: .synchronizable
            case .any: .either
            case .no: .local
            // A reference finds its item, synchronizable or not.
            case nil: dictionary.reference == nil ? .local : .either
            }
        tombstones = dictionary.tombstone == true ? .only : .hidden
        hostOrSubdomain = dictionary.hostOrSubdomain
        switch dictionary.reference {
        case .current(let reference): self.reference = reference
        case .legacy: throw KeychainFailure(.itemNotFound, "no item has a persistent reference of the older form")
        case nil: break
        }
    }
}
