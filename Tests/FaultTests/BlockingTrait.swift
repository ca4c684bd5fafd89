// SPDX-License-Identifier: Apache-2.0
import KeychainTestSupport
import Testing

/// Runs tests that block on threads of their own, so that other tests go on meanwhile and results are reported as tests end.
struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(BlockingTestExecutor.shared) { try await function() }
    }
}

extension Trait where Self == BlockingTrait {
    /// The tests wait for child processes, or do much else that blocks.
    static var blocking: Self { Self() }
}
