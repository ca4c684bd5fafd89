// SPDX-License-Identifier: Apache-2.0
import Foundation

/// An attribute's value that knows its own type, so that tables can hold it and tests compare it: text is never data here.
enum PlainValue: Hashable, Sendable {
    case text(String)
    case data(Data)
    case number(Int)
    case date(Date)

    /// Nil for a value of any other type.
    init?(_ value: Any?) {
        switch value {
        case let text as String: self = .text(text)
        // Before numbers: with swift-corelibs-foundation data casts to NSNumber too.
        case let data as Data: self = .data(data)
        case let date as Date: self = .date(date)
        case let number as NSNumber: self = .number(number.intValue)
        default: return nil
        }
    }

    /// What a dictionary takes.
    var value: any Sendable {
        switch self {
        case .text(let text): text
        case .data(let data): data
        case .number(let number): number
        case .date(let date): date
        }
    }
}
