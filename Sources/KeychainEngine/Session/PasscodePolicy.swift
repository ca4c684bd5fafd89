// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
package import Keybag
package import KeychainCore
internal import KeychainSystem

/// The rules for new passcodes and the cost of their key derivation.
///
/// The administrator sets them in a file that the user cannot change:
///
///     { "passcodeMinimumLength": 10, "passcodeMemoryMiB": 128 }
package struct PasscodePolicy: Hashable, Sendable {
    package static let systemPath = "/etc/keychain/policy.json"

    /// The minimum length in characters (Unicode scalars of the normalized text).
    package var minimumLength: Int
    /// The cost of one attempt at a passcode.
    package var cost: PasscodeCost

    /// The most that checking a passcode or a password costs unless a person has accepted more: `cost`, or the standard one if that is higher.
    package var usualCost: PasscodeCost { cost.exceeds(.standard) ? cost : .standard }

    package init(minimumLength: Int = 6, cost: PasscodeCost = .standard) {
        self.minimumLength = minimumLength
        self.cost = cost
    }

    private struct File: Decodable {
        let passcodeMinimumLength: Int?
        let passcodeMemoryMiB: Int?
    }

    private static let knownKeys: Set<String> = ["passcodeMinimumLength", "passcodeMemoryMiB"]
    private static let byteLimit = 64 << 10

    /// Reads the policy from a file; what the file does not set, or all if there is no file, is as in `defaults`.
    ///
    /// Throws `.notAvailable` for a file that cannot be read, is invalid, or can be written by others than the administrator.
    /// With `acceptsOwnFile` the file may belong to the user.
    package init(
        filePath path: String, acceptsOwnFile: Bool = false, defaults: PasscodePolicy = PasscodePolicy()
    ) throws(KeychainFailure) {
        self = defaults
        do throws(KeychainFailure) {
            let owner: TrustedFile.Owner = acceptsOwnFile ? .rootOrCurrentUser : .root
            let contents = try TrustedFile.contents(path, byteLimit: Self.byteLimit, owner: owner, subject: "the policy")
            if let contents { try apply(Data(contents), path) }
        } catch {
            throw error.located(at: path, subject: .policy).withRemedy(.correctPolicy)
        }
    }

    private mutating func apply(_ contents: Data, _ path: String) throws(KeychainFailure) {
        let file: File
        do {
            let names = try JSONDecoder().decode([String: Int].self, from: contents).keys
            if let unknown = names.first(where: { !Self.knownKeys.contains($0) }) {
                throw KeychainFailure(.notAvailable, "\(path): \"\(unknown)\" is not a setting of this version", cause: .malformed)
            }
            file = try JSONDecoder().decode(File.self, from: contents)
        } catch let failure as KeychainFailure {
            throw failure
        } catch {
            throw KeychainFailure(
                .notAvailable,
                "\(path) is not understood: it must be one JSON object of whole numbers (\(Self.knownKeys.sorted().joined(separator: ", ")))",
                cause: .malformed
            )
        }
        if let length = file.passcodeMinimumLength {
            guard (1...Passcode.largestByteCount).contains(length) else {
                throw KeychainFailure(
                    .notAvailable, "\(path): passcodeMinimumLength must be from 1 to \(Passcode.largestByteCount)", cause: .malformed)
            }
            minimumLength = length
        }
        if let mebibytes = file.passcodeMemoryMiB {
            guard let cost = PasscodeCost(memoryMebibytes: mebibytes) else {
                throw KeychainFailure(
                    .notAvailable, "\(path): passcodeMemoryMiB must be a power of two from 1 to 1024", cause: .malformed)
            }
            self.cost = cost
        }
    }

    /// Throws `.parameter` for a passcode that is too short.
    package func validate(_ passcode: borrowing Passcode) throws(KeychainFailure) {
        guard passcode.characterCount >= minimumLength else {
            throw KeychainFailure(.parameter, "the new passcode is too short: it needs at least \(minimumLength) characters")
        }
    }
}

extension KeychainConfiguration {
    /// Reads the administrator's current policy.
    package func passcodePolicy() throws(KeychainFailure) -> PasscodePolicy {
        try PasscodePolicy(filePath: policyPath, acceptsOwnFile: testPolicy != nil, defaults: testPolicy ?? PasscodePolicy())
    }
}

extension PasscodeCost {
    /// Creates the cost that uses that much memory; nil unless it is a power of two from 1 to 1,024 MiB.
    package init?(memoryMebibytes: Int) {
        guard (1...1_024).contains(memoryMebibytes), memoryMebibytes & (memoryMebibytes - 1) == 0 else { return nil }
        // scrypt uses 128 × r × N bytes: 128 × 8 × 2^10 = 1 MiB.
        self.init(roundsExponent: UInt8(10 + memoryMebibytes.trailingZeroBitCount), blockSize: 8, parallelism: 1)
    }
}
