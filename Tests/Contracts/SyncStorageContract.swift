// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
package import KeychainSync

/// A rule that every `SyncStorage` follows, with a check.
///
/// Run all of `SyncStorageContract.rules`, each on an empty storage.
package struct SyncStorageContract: Sendable, CustomStringConvertible {
    /// Checks a storage; the second one is the same, opened by another device.
    typealias Check = @Sendable (any SyncStorage, any SyncStorage, inout ContractFindings) async throws(SyncStorageError) -> Void

    /// The rule, in one sentence.
    package let description: String
    private let check: Check

    init(_ description: String, _ check: @escaping Check) {
        self.description = description
        self.check = check
    }

    /// The rules about objects; each needs an empty storage.
    package static let objectRules = creationRules + readingRules + listingRules + removalRules + nameRules
    /// All rules; each needs an empty storage.
    package static let rules = objectRules + concurrencyRules + hintRules

    /// Returns a sentence for each violation of the rule by `storage`; empty if it follows the rule.
    ///
    /// `other` is the same storage, opened once more; nil if it is open once.
    package func violations(of storage: any SyncStorage, other: (any SyncStorage)? = nil) async -> [String] {
        var findings = ContractFindings()
        do throws(SyncStorageError) {
            try await check(storage, other ?? storage, &findings)
        } catch {
            findings.report("unexpected error \(error.code): \(error)")
        }
        return findings.violations
    }
}

/// Names and contents of objects.
package enum SampleObjects {
    /// The kinds of objects.
    package enum Kind: CaseIterable, Sendable {
        case statement, checkpoint, piece, invitation, batch
    }

    /// Returns a new name.
    package static func name(_ kind: Kind) -> String {
        let hash = Identifier128.random().hexadecimal + Identifier128.random().hexadecimal
        return switch kind {
        case .statement: "m/" + hash
        case .checkpoint: "c/" + hash
        case .piece: "p/" + hash
        case .invitation: "j/0123456789abcdef0123456789abcdef/" + hash
        case .batch: batch(.random(in: 1 ... .max))
        }
    }

    /// Returns a new name of each kind; all batches are of one log.
    package static func names() -> [String] { Kind.allCases.map(name) }

    /// Returns a new name of a batch with this number.
    package static func batch(_ number: UInt64, in log: String = log) -> String {
        let digits = String(number, radix: 16)
        return log + "/" + String(repeating: "0", count: 16 - digits.count) + digits + "-" + Identifier128.random().hexadecimal
    }

    /// The folder of the batches.
    package static let log = device + "/fedcba9876543210fedcba9876543210"
    package static let device = "b/0123456789abcdef0123456789abcdef"
    package static let circle = "00112233445566778899aabbccddeeff"

    /// Returns new bytes.
    package static func bytes(_ count: Int) -> [UInt8] {
        // A random start and a linear congruential generator: one random number for each byte takes seconds.
        var state = UInt64.random(in: 0 ... .max)
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
    }
}

extension ContractFindings {
    /// Reports a violation unless `body` fails with `code`; `operation` names the body in the report.
    mutating func expect(
        _ code: SyncStorageError.Code, _ operation: String, _ body: () async throws(SyncStorageError) -> Void
    ) async {
        do throws(SyncStorageError) {
            try await body()
            report("\(operation) succeeded")
        } catch {
            if error.code != code { report("\(operation) failed with \(error.code), not \(code)") }
        }
    }

    /// Reports a violation unless the storage lists exactly these objects in the folder, each once.
    mutating func expectListing(_ names: [String], in folder: String, of storage: any SyncStorage) async throws(SyncStorageError) {
        let found = try await storage.list(folder).sorted()
        if found != names.sorted() { report("\(folder) lists \(found.count) objects, not \(names.count)") }
    }
}
#endif
