// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
/// Runs `body` on a fresh, empty in-memory keychain.
///
/// - Parameters:
///   - accessGroups: Access groups the program under test is entitled to, beside its own.
///   - body: What to run; `InMemoryKeychain.current` is the keychain.
/// - Returns: What `body` returns.
/// - Throws: What `body` throws, or an error when the keychain could not be made.
public func withInMemoryKeychain<Result>(accessGroups: [String] = [], _ body: () throws -> Result) throws -> Result {
    try InMemoryKeychain(accessGroups: accessGroups).perform(body)
}

/// Runs `body`, and every task that it starts, on a fresh, empty in-memory keychain.
///
/// - Parameters:
///   - accessGroups: Access groups the program under test is entitled to, beside its own.
///   - isolation: The caller's actor; `body` stays on it.
///   - body: What to run; `InMemoryKeychain.current` is the keychain.
/// - Returns: What `body` returns.
/// - Throws: What `body` throws, or an error when the keychain could not be made.
public func withInMemoryKeychain<Result>(
    accessGroups: [String] = [], isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
) async throws -> Result {
    try await InMemoryKeychain(accessGroups: accessGroups).perform(body)
}
#endif
