// SPDX-License-Identifier: Apache-2.0
internal import KeychainTesting
public import Testing

#if !canImport(Darwin)
/// A trait that gives each test its own empty in-memory keychain, so that tests can run in parallel and in any order.
///
///     @Test(.inMemoryKeychain) func remembersTheToken() throws { … }
///     @Suite(.inMemoryKeychain) struct TokenTests { … }
public struct InMemoryKeychainTrait: TestTrait, SuiteTrait, TestScoping {
    let accessGroups: [String]

    /// True: each test of a suite gets a keychain of its own.
    public var isRecursive: Bool { true }

    /// Runs a test in the scope of a new keychain.
    ///
    /// Swift Testing calls this.
    ///
    /// - Parameters:
    ///   - test: The test.
    ///   - testCase: The test case; nil for a suite.
    ///   - function: Runs the test case.
    /// - Throws: The error of the test, or an error if the keychain cannot be made.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withInMemoryKeychain(accessGroups: accessGroups, function)
    }
}

extension Trait where Self == InMemoryKeychainTrait {
    /// Gives each test its own empty in-memory keychain.
    ///
    /// On Apple platforms the test is skipped.
    public static var inMemoryKeychain: Self { Self(accessGroups: []) }

    /// Gives each test its own empty in-memory keychain, and the program under test additional access groups.
    ///
    /// On Apple platforms the test is skipped.
    ///
    /// - Parameter accessGroups: The access groups in the entitlement `keychain-access-groups`.
    /// - Returns: The trait.
    public static func inMemoryKeychain(accessGroups: [String]) -> Self { Self(accessGroups: accessGroups) }
}
#endif

#if canImport(Darwin)
extension Trait where Self == ConditionTrait {
    /// Skips the test: there is no in-memory keychain on Apple platforms.
    public static var inMemoryKeychain: Self {
        .disabled("there is no in-memory keychain on Apple platforms")
    }

    /// Skips the test: there is no in-memory keychain on Apple platforms.
    ///
    /// - Parameter accessGroups: Not used on Apple platforms.
    /// - Returns: The trait.
    public static func inMemoryKeychain(accessGroups: [String]) -> Self { inMemoryKeychain }
}
#endif
