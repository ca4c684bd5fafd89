// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// A value of a property list, of the kinds that keyed archives are made of.
enum PropertyListNode {
    case boolean(Bool)
    case integer(Int64)
    /// An integer too large for the other case.
    case largeInteger(UInt64)
    case real(Double)
    /// Seconds since the reference date.
    case date(Double)
    case data(Data)
    case string(String)
    /// The number of an object of the archive.
    case identifier(Int)
    case array([PropertyListNode])
    case dictionary([String: PropertyListNode])

    var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    var real: Double? {
        switch self {
        case .real(let number), .date(let number): number
        case .integer(let number): Double(number)
        default: nil
        }
    }

    var data: Data? {
        if case .data(let data) = self { data } else { nil }
    }

    var identifier: Int? {
        if case .identifier(let number) = self { number } else { nil }
    }

    var array: [PropertyListNode]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    var dictionary: [String: PropertyListNode]? {
        if case .dictionary(let entries) = self { entries } else { nil }
    }
}
