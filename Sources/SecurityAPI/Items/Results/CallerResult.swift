// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// The caller's variable that receives what a call delivers.
///
/// Safe, because the pointer is only written through, during the call it came with.
@safe struct ResultPointer {
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

/// The array of a search with many results.
///
/// A plain `NSArray` would turn every dictionary into an `NSDictionary`, which the caller's `as? [[String: Any]]` turns back, key by key:
/// 25 µs an item. This one hands out the Swift values it was made of, so that the cast costs a tenth of a microsecond; for everybody who
/// wants Foundation objects they bridge one by one as usual.
final class ResultArray: NSArray {
    private let elements: [Any]

    /// The elements as an array for the caller.
    static func array(of elements: [Any]) -> NSArray {
        castsReachElements ? ResultArray(elements) : elements as NSArray
    }

    /// Whether Foundation's casts ask a subclass for its elements, as they do today, rather than look into the superclass's storage.
    ///
    /// Wherever they do not, a plain array is slow and right.
    private static let castsReachElements: Bool = {
        let array: AnyObject = ResultArray(["element"])
        return array as? [String] == ["element"]
    }()

    private init(_ elements: [Any]) {
        self.elements = elements
        unsafe super.init(objects: nil as UnsafePointer<AnyObject>?, count: 0)
    }

    required init(objects: UnsafePointer<AnyObject>?, count: Int) {
        // The caller promises `count` objects: the contract of the superclass's initializer.
        elements = unsafe Array(UnsafeBufferPointer(start: objects, count: count))
        unsafe super.init(objects: nil as UnsafePointer<AnyObject>?, count: 0)
    }

    required convenience init(arrayLiteral elements: Any...) {
        self.init(elements)
    }

    /// Nothing archives search results.
    required convenience init?(coder: NSCoder) {
        nil
    }

    override var count: Int { elements.count }

    override func object(at index: Int) -> Any { elements[index] }
}
