// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

/// The mistake a dictionary is answered with.
///
/// A dictionary has no order, so with several mistakes the answer must not depend on which is met first: names count before types, types
/// before values, and then the alphabet decides.
struct FirstFault {
    enum Rank: Int {
        case name, type, value
    }

    private var first: (rank: Rank, key: String, failure: KeychainFailure)?

    mutating func note(_ rank: Rank, _ key: String, _ status: KeychainStatus, _ problem: String) {
        if let first, (first.rank.rawValue, first.key) <= (rank.rawValue, key) { return }
        first = (rank, key, KeychainFailure(status, "\(Self.describe(key)) \(problem)"))
    }

    mutating func note(_ fault: ValueFault, _ key: String) {
        switch fault {
        case .type: note(.type, key, .parameter, "has a value of a type it does not take")
        case .value: note(.value, key, .parameter, "has a value that is not valid")
        }
    }

    func throwIfAny() throws(KeychainFailure) {
        if let first { throw first.failure }
    }

    /// The key as a log shows it: on one line, and short, whatever the caller used as a key.
    private static func describe(_ key: String) -> String {
        let name = key.prefix(40).debugDescription
        return Attribute(name: key).map { "\(name) (\($0))" } ?? name
    }
}
