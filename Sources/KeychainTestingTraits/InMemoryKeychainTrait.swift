// SPDX-License-Identifier: Apache-2.0
internal import KeychainTesting
public import Testing

#if !canImport(Darwin)
/// Gives each test its own empty in-memory keychain, so that tests run in parallel and in any order.
///
///     @Test(.inMemoryKeychain) func remembersTheToken() throws { … }
///     @Suite(.inMemoryKeychain) struct TokenTests { … }
public struct InMemoryKeychainTrait: TestTrait, SuiteTrait, TestScoping {
    let accessGroups: [String]

    /// Tests in a suite get a keychain each, not one together.
    public var isRecursive: Bool { true }

    /// Runs a test in the scope of a fresh keychain; what Swift Testing calls.
    ///
    /// - Throws: What the test throws, or an error when the keychain could not be made.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withInMemoryKeychain(accessGroups: accessGroups, function)
    }
}

extension Trait where Self == InMemoryKeychainTrait {
    /// Each test gets its own empty in-memory keychain.
    ///
    /// On Apple platforms such a test is recorded as skipped.
    public static var inMemoryKeychain: Self { Self(accessGroups: []) }

    /// Each test gets its own empty in-memory keychain, and the program under test these access groups beside its own.
    ///
    /// - Parameter accessGroups: As in the entitlement `keychain-access-groups`.
    /// - Returns: The trait.
    public static func inMemoryKeychain(accessGroups: [String]) -> Self { Self(accessGroups: accessGroups) }
}
#endif

#if canImport(Darwin)
extension Trait where Self == ConditionTrait {
    /// There is no in-memory keychain beside Apple's own: the test is recorded as skipped.
    public static var inMemoryKeychain: Self {
        .disabled("the in-memory keychain replaces Keychain Services only where Apple's are absent")
    }

    /// There is no in-memory keychain beside Apple's own: the test is recorded as skipped.
    ///
    /// - Parameter accessGroups: Not used here.
    /// - Returns: The trait.
    public static func inMemoryKeychain(accessGroups: [String]) -> Self { inMemoryKeychain }
}
#endif
