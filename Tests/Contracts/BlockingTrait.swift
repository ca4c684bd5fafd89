// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainTestSupport
package import Testing

/// Runs blocking tests on threads of their own, so that other tests continue and results are reported immediately.
///
/// Swift's cooperative pool has one thread for each processor. A test that blocks one of them delays all other tests.
package struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(BlockingTestExecutor.shared) { try await function() }
    }
}

extension Trait where Self == BlockingTrait {
    /// The tests wait for child processes, flushes, prompts, or the kernel's clock.
    package static var blocking: Self { Self() }
}
#endif
