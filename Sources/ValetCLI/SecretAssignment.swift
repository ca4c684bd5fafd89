// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

/// `NAME=KEY`: which secret a command gets under which name of its environment.
struct SecretAssignment: ExpressibleByArgument {
    let name: String
    let key: String

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, Self.isName(parts[0]), !parts[1].isEmpty else { return nil }
        name = parts[0]
        key = parts[1]
    }

    /// What every shell takes for the name of a variable.
    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
