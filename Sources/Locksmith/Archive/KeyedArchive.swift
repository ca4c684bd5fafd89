// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// The form in which dictionaries are kept in items: the one of Foundation's `NSKeyedArchiver`, which Locksmith 4.0 uses on Apple platforms.
///
/// Reading and writing are our own. Foundation for Linux ends the program when it meets damaged bytes, and even when it is to archive
/// some values; and with its own reader each platform would accept other things.
///
/// An archive is a property list with a flat array of objects. Where an object contains another, it has that one's number.
enum KeyedArchive {
    /// How deep arrays and dictionaries may be nested; what contains itself is deeper than anything.
    static let maximumDepth = 100

    /// Whether a value may be a key of a dictionary or an element of a set: only what contains nothing else.
    static func canBeHashed(_ value: Any) -> Bool {
        switch value {
        // First: a cast to one of Foundation's classes makes objects of all that a container contains.
        case is [Any], is [AnyHashable: Any], is Set<AnyHashable>: false
        case is String, is NSNumber, is Data, is URL, is UUID, is NSNull: true
        // One that is no number is not equal to itself.
        case let date as Date: !date.timeIntervalSinceReferenceDate.isNaN
        default: false
        }
    }

    /// Whether anybody can make many values of one hash: Foundation hashes numbers without a seed, and only the beginning of data.
    static func isHashPredictable(_ value: Any) -> Bool {
        value is NSNumber || value is Data
    }

    /// How many such values may be keys or elements of sets in one archive, since each might have to be compared with all others.
    static let maximumPredictableHashCount = 1_000
    /// How many objects are written; containers that hold the same one over and over would take for ever.
    static let maximumObjectCount = 100_000

    static let name = "NSKeyedArchiver"
    static let version: Int64 = 100_000
    /// Stands for no object, always as the first.
    static let null = "$null"

    /// The keys of the property list, and those in an object.
    enum Key {
        static let archiver = "$archiver"
        static let version = "$version"
        static let top = "$top"
        static let root = "root"
        static let objects = "$objects"
        static let objectClass = "$class"
        static let className = "$classname"
        static let classNames = "$classes"
        static let keys = "NS.keys"
        static let values = "NS.objects"
        static let time = "NS.time"
        static let data = "NS.data"
        static let string = "NS.string"
        static let base = "NS.base"
        static let relative = "NS.relative"
        static let uuid = "NS.uuidbytes"
    }

    /// The classes that an archive may contain, beside strings, numbers and data, which it holds as they are.
    ///
    /// An object of any other class is refused.
    enum ArchivedClass: String {
        case dictionary = "NSDictionary"
        case array = "NSArray"
        case set = "NSSet"
        case date = "NSDate"
        case url = "NSURL"
        case uuid = "NSUUID"
        case null = "NSNull"
        case string = "NSString"
        case data = "NSData"

        /// The class or the one that can be changed.
        init?(named name: String) {
            self.init(rawValue: name.hasPrefix("NSMutable") ? "NS" + name.dropFirst("NSMutable".count) : name)
        }
    }
}
