// SPDX-License-Identifier: Apache-2.0

/// The name of a valet: a string that is not empty.
///
/// It separates the values of one valet from those of another, so choose a name for the kind of data kept there.
/// The name of the program need not be in it.
public struct Identifier: CustomStringConvertible, Sendable {
    /// The name as it was given.
    public let description: String

    /// Makes an identifier, or nil where there is no text to make it of.
    ///
    /// - Parameter nonEmpty: The name; nil and the empty string give nil. Compared byte by byte, so "é" as one
    ///   character and "é" as a letter with an accent are two names.
    public init?(nonEmpty: String?) {
        guard let nonEmpty, !nonEmpty.isEmpty else { return nil }
        description = nonEmpty
    }

    /// A group has text too, so it can stand in where no identifier was given.
    init(group: SharedGroupIdentifier) {
        description = group.group
    }
}
