// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// The format of dictionaries in items: that of Foundation's `NSKeyedArchiver`, which Locksmith 4.0 uses on Apple platforms.
///
/// This module reads and writes the format itself, because another program of the same access group may have written these bytes.
/// Foundation for Linux terminates the program on some damaged archives, and when it archives some values. Its reader also accepts
/// different archives than that of Apple platforms.
///
/// An archive is a property list with a flat array of objects. An object refers to another by its index.
enum KeyedArchive {
    /// The maximum depth of nested containers.
    ///
    /// A container that contains itself exceeds it.
    static let maximumDepth = 100

    /// Returns whether a value may be a key of a dictionary or an element of a set: containers may not.
    static func canBeHashed(_ value: Any) -> Bool {
        switch value {
        // First, because a cast of a container to a Foundation class bridges all of its contents.
        case is [Any], is [AnyHashable: Any], is Set<AnyHashable>: false
        case is String, is NSNumber, is Data, is URL, is UUID, is NSNull: true
        // A date that is not a number is not equal to itself.
        case let date as Date: !date.timeIntervalSinceReferenceDate.isNaN
        default: false
        }
    }

    /// Returns whether an attacker can choose values with equal hashes: Foundation hashes numbers without a seed, and only a prefix of
    /// data.
    static func isHashPredictable(_ value: Any) -> Bool {
        value is NSNumber || value is Data
    }

    /// The maximum number of keys and set elements with predictable hashes in one archive: each may have to be compared with all others.
    static let maximumPredictableHashCount = 1_000
    /// The maximum number of objects to write.
    ///
    /// Containers that share their contents at every level would otherwise take exponential time.
    static let maximumObjectCount = 100_000

    static let name = "NSKeyedArchiver"
    static let version: Int64 = 100_000
    /// The first object, which represents the absence of an object.
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

    /// The classes of objects in an archive, other than strings, numbers and data, which need no class.
    ///
    /// The reader rejects an object of any other class.
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

        /// Creates the class from its name or from that of its mutable subclass.
        init?(named name: String) {
            self.init(rawValue: name.hasPrefix("NSMutable") ? "NS" + name.dropFirst("NSMutable".count) : name)
        }
    }
}
