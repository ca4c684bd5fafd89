// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
package import Keybag
package import KeychainCore
internal import KeychainSystem

/// What a new passcode must be like, and how costly trying one is.
///
/// The administrator decides, in a file that the user cannot change:
///
///     { "passcodeMinimumLength": 10, "passcodeMemoryMiB": 128 }
package struct PasscodePolicy: Hashable, Sendable {
    package static let systemPath = "/etc/keychain/policy.json"

    /// In characters, as Unicode scalars of the normalised text.
    package var minimumLength: Int
    package var cost: PasscodeCost

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

    /// The policy of a file; the default where there is none.
    ///
    /// Throws `.notAvailable` for a file that cannot be read or understood, since the administrator meant something by it, and for
    /// one that somebody else may have written. `acceptsOwnFile`: the user may have.
    package init(filePath path: String, acceptsOwnFile: Bool = false) throws(KeychainFailure) {
        self.init()
        do throws(KeychainFailure) {
            let owner: TrustedFile.Owner = acceptsOwnFile ? .rootOrCurrentUser : .root
            let contents = try TrustedFile.contents(path, byteLimit: Self.byteLimit, owner: owner, subject: "the policy")
            if let contents { try apply(Data(contents), path) }
        } catch {
            throw error.withRemedy(.correctPolicy)
        }
    }

    private mutating func apply(_ contents: Data, _ path: String) throws(KeychainFailure) {
        let file: File
        do {
            let names = try JSONDecoder().decode([String: Int].self, from: contents).keys
            if let unknown = names.first(where: { !Self.knownKeys.contains($0) }) {
                throw KeychainFailure(.notAvailable, "\(path): \"\(unknown)\" is not a setting of this version")
            }
            file = try JSONDecoder().decode(File.self, from: contents)
        } catch let failure as KeychainFailure {
            throw failure
        } catch {
            throw KeychainFailure(
                .notAvailable,
                "\(path) is not understood: it must be one JSON object of whole numbers (\(Self.knownKeys.sorted().joined(separator: ", ")))"
            )
        }
        if let length = file.passcodeMinimumLength {
            guard (1...Passcode.largestByteCount).contains(length) else {
                throw KeychainFailure(.notAvailable, "\(path): passcodeMinimumLength must be from 1 to \(Passcode.largestByteCount)")
            }
            minimumLength = length
        }
        if let mebibytes = file.passcodeMemoryMiB {
            guard let cost = PasscodeCost(memoryMebibytes: mebibytes) else {
                throw KeychainFailure(.notAvailable, "\(path): passcodeMemoryMiB must be a power of two from 1 to 1024")
            }
            self.cost = cost
        }
    }

    /// Throws `.parameter` for a passcode that is too short.
    package func admit(_ passcode: borrowing Passcode) throws(KeychainFailure) {
        guard passcode.characterCount >= minimumLength else {
            throw KeychainFailure(.parameter, "the new passcode is too short: it needs at least \(minimumLength) characters")
        }
    }
}

extension KeychainConfiguration {
    /// What the administrator asks for at this moment.
    func passcodePolicy() throws(KeychainFailure) -> PasscodePolicy {
        try PasscodePolicy(filePath: policyPath, acceptsOwnFile: acceptsUserOwnedPolicy)
    }
}

extension PasscodeCost {
    /// The cost that takes so much memory; nil unless that is a power of two from 1 to 1,024 MiB.
    package init?(memoryMebibytes: Int) {
        guard (1...1_024).contains(memoryMebibytes), memoryMebibytes & (memoryMebibytes - 1) == 0 else { return nil }
        // 128 bytes × 8 × 2^10 are 1 MiB.
        self.init(roundsExponent: UInt8(10 + memoryMebibytes.trailingZeroBitCount), blockSize: 8, parallelism: 1)
    }
}
