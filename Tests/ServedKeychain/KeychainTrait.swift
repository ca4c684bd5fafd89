// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
package import KeychainTesting
import KeychainTestingTraits
package import Testing

#if canImport(Darwin)
package typealias KeychainTrait = ConditionTrait

extension Trait where Self == ConditionTrait {
    package static var keychain: Self { .inMemoryKeychain }
    package static func keychain(accessGroups: [String]) -> Self { .inMemoryKeychain }
}
#else
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainPeers
import KeychainSystem
import KeychainTestSupport

@testable import keychaind

/// Gives each test an empty in-memory keychain of its own.
///
/// With `KEYCHAIN_TEST_KEYCHAIN=daemon` in the environment of the tests, the calls of a test reach that keychain through keychaind's protocol: the
/// service runs in the process of the tests, so that a test can damage the store, lock it, and answer prompts as without it.
package struct KeychainTrait: TestTrait, SuiteTrait, TestScoping {
    private let accessGroups: [String]

    package init(accessGroups: [String]) {
        self.accessGroups = accessGroups
    }

    package var isRecursive: Bool { true }

    package func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
        let keychain = try InMemoryKeychain(accessGroups: accessGroups)
        guard ServedKeychain.isUsed else { return try await keychain.perform(function) }
        let served = try ServedKeychain(keychain.keychain)
        try await keychain.perform {
            try await CurrentKeychain.$bound.withValue(served.client, operation: function)
        }
    }
}

extension Trait where Self == KeychainTrait {
    package static var keychain: Self { Self(accessGroups: []) }
    package static func keychain(accessGroups: [String]) -> Self { Self(accessGroups: accessGroups) }
}

extension InMemoryKeychain {
    /// Runs `body` in the scope of this keychain, through keychaind's protocol where `KeychainTrait` does.
    package func performAsTested<Result>(_ body: () throws -> Result) throws -> Result {
        guard ServedKeychain.isUsed else { return try perform(body) }
        let served = try ServedKeychain(keychain)
        return try perform { try CurrentKeychain.with(served.client, body) }
    }
}

/// A keychain of this process that is served by keychaind's code, until it is released.
final class ServedKeychain: Sendable {
    static let isUsed = ProcessInfo.processInfo.environment["KEYCHAIN_TEST_KEYCHAIN"] == "daemon"

    let client: DaemonKeychain
    private let service: Service
    private let directory: TemporaryDirectory

    init(_ keychain: LocalKeychain) throws {
        directory = try TemporaryDirectory(inMemory: true)
        let services = SharedServices(
            beginUse: { _, _ in UsedKeychain(keychain: keychain) }, endUse: { _ in },
            identify: { _, declared in IdentifiedProgram(identity: .programGroup("test"), entitlements: declared) })
        service = try Service(services, PacketListener(at: directory.path + "/socket"))
        client = DaemonKeychain(
            DaemonClient(entitlements: keychain.entitlements, connector: DaemonClient.connector(toSocketAt: directory.path + "/socket")))
        let isStarted = BackgroundThread.start { [service] in service.run() }
        try #require(isStarted)
    }

    deinit { service.end() }
}
#endif
