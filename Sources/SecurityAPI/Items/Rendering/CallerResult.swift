// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The caller's variable that receives what a call delivers.
///
/// Safe, because the pointer is only written through, during the call it came with.
@safe struct CallerResult {
    private let pointer: UnsafeMutablePointer<CFTypeRef?>?

    init(_ pointer: UnsafeMutablePointer<CFTypeRef?>?) {
        unsafe self.pointer = pointer
    }

    /// Delivers one result, nil for none.
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

    /// Delivers any number of results.
    func deliver(all values: [Any]) {
        deliver(object: ResultArray.array(of: values))
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
