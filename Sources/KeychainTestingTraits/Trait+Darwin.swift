// SPDX-License-Identifier: Apache-2.0
#if canImport(Darwin)
public import Testing

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
