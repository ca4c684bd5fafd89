// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainCore

/// The caller's variable that receives the result of a SecItem call.
///
/// Safe, because the pointer is only written through, and only during the call that it was passed to.
@safe struct ResultPointer {
    private let pointer: UnsafeMutablePointer<CFTypeRef?>?

    init(_ pointer: UnsafeMutablePointer<CFTypeRef?>?) {
        unsafe self.pointer = pointer
    }

    /// Stores one result, or nil for none.
    func deliver(_ value: Any?) {
        deliver(
            object: value.map { value in
                switch value {
                case let data as Data: ResultData.object(data)
                case let dictionary as [String: Any]: Self.object(dictionary)
                default: value as AnyObject
                }
            })
    }

    /// Stores an array with a result for each item that has one.
    func deliver(_ items: [KeychainItem], renderedBy renderer: ItemRenderer) {
        // Filtering copies the array, which takes 11 MB for 100,000 items.
        let items = items.allSatisfy(renderer.hasResult) ? items : items.filter(renderer.hasResult)
        deliver(object: ResultArray.array(of: items, renderedBy: renderer))
    }

    private func deliver(object: CFTypeRef?) {
        // The pointer is nil or the caller's variable, valid until the call returns: the contract of Apple's functions.
        unsafe pointer?.pointee = object
    }

    private static func object(_ dictionary: [String: Any]) -> NSDictionary {
        let values = dictionary.mapValues { value in
            if type(of: value) == Data.self, let data = value as? Data { ResultData.object(data) } else { value }
        }
        return values as NSDictionary
    }
}
