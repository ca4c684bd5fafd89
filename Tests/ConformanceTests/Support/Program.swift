// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import KeychainCore
import KeychainTesting
import Testing

/// A program with entitlements of its own.
enum Program {
    /// Runs `body` as a program with these entitlements, on a keychain of its own.
    static func run<Result>(entitledTo entitlements: Entitlements, _ body: () throws -> Result) throws -> Result {
        try InMemoryKeychain(entitlements: entitlements).perform(body)
    }

    /// Runs `body` as another program on the same keychain.
    static func runAnother<Result>(entitledTo entitlements: Entitlements, _ body: () throws -> Result) throws -> Result {
        try #require(InMemoryKeychain.current).sharedWithProgram(entitledTo: entitlements).perform(body)
    }
}
#endif
