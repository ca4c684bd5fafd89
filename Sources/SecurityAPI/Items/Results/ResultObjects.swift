// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainCore

/// The result of a search for several items: an array that renders each item when the caller reads it.
///
/// A listing of 100,000 items would otherwise hold 100,000 dictionaries of two kilobytes each. Elements are Swift values, which makes the
/// caller's `as? [[String: Any]]` cheap: a plain `NSArray` would convert each dictionary to an `NSDictionary` and back, 25 µs an item.
final class ResultArray: NSArray {
    private enum Storage {
        case items([KeychainItem], ItemRenderer)
        case objects([Any])
    }

    private let storage: Storage

    /// Returns an array of the results of `items`, each of which has one.
    static func array(of items: [KeychainItem], renderedBy renderer: ItemRenderer) -> NSArray {
        castsReachElements ? ResultArray(.items(items, renderer)) : items.compactMap(renderer.render) as NSArray
    }

    /// Whether Foundation's casts call a subclass's `object(at:)`, as they do today, instead of reading the superclass's storage.
    ///
    /// If not, `array(of:renderedBy:)` returns a plain array, which is slow and correct.
    private static let castsReachElements: Bool = {
        let array: AnyObject = ResultArray(.objects(["element"]))
        return array as? [String] == ["element"]
    }()

    private init(_ storage: Storage) {
        self.storage = storage
        unsafe super.init(objects: nil as UnsafePointer<AnyObject>?, count: 0)
    }

    required init(objects: UnsafePointer<AnyObject>?, count: Int) {
        // The caller promises `count` objects: the contract of the superclass's initializer.
        storage = .objects(unsafe Array(UnsafeBufferPointer(start: objects, count: count)))
        unsafe super.init(objects: nil as UnsafePointer<AnyObject>?, count: 0)
    }

    required convenience init(arrayLiteral elements: Any...) {
        self.init(.objects(elements))
    }

    /// Returns nil: search results are not archived.
    required convenience init?(coder: NSCoder) {
        nil
    }

    override var count: Int {
        switch storage {
        case .items(let items, _): items.count
        case .objects(let objects): objects.count
        }
    }

    override func object(at index: Int) -> Any {
        switch storage {
        // Items without a result were left out, so none renders as null.
        case .items(let items, let renderer): renderer.render(items[index]) ?? NSNull()
        case .objects(let objects): objects[index]
        }
    }
}

/// The data that a call returns.
///
/// The caller's `as? Data` reads a plain `NSData` byte by byte, at 60 ns each: 50 ms for a mebibyte. This subclass is contiguous and
/// declares it, so the cast copies it whole.
///
/// Safe, because the buffer is the object's own: filled on initialization, freed on deinitialization, never changed.
@safe final class ResultData: NSData, ContiguousBytes {
    private let address: UnsafeMutableRawPointer
    private let byteCount: Int

    /// Returns the bytes as an object for the caller.
    static func object(_ data: Data) -> NSData {
        castsAskForBytes ? ResultData(data) : data as NSData
    }

    /// Whether Foundation's cast calls a subclass's `withUnsafeBytes`, as it does today.
    ///
    /// If not, `object(_:)` returns plain data, which is slow and correct.
    private static let castsAskForBytes: Bool = {
        let bytes = Data([1, 2, 3])
        let object: AnyObject = ResultData(bytes)
        return object as? Data == bytes
    }()

    private init(_ data: Data) {
        byteCount = data.count
        let copy = UnsafeMutableRawPointer.allocate(byteCount: data.count, alignment: 1)
        // Both hold `byteCount` bytes. (`copyBytes(to:)` is generic and takes five times as long.)
        unsafe data.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { unsafe copy.copyMemory(from: start, byteCount: bytes.count) }
        }
        unsafe address = copy
        super.init()
    }

    /// Returns nil: search results are not archived.
    required init?(coder: NSCoder) {
        nil
    }

    deinit {
        unsafe address.deallocate()
    }

    override var length: Int { byteCount }

    override var bytes: UnsafeRawPointer { unsafe UnsafeRawPointer(address) }

    func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try unsafe body(UnsafeRawBufferPointer(start: address, count: byteCount))
    }
}
