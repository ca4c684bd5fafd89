// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import KeychainCore
import Synchronization
import Testing

@testable import SecurityAPI

@Suite("Evaluating with LAContext")
struct PolicyEvaluationTests {
    private let context = LAContext()

    /// Runs `body` on `keychain`.
    @discardableResult
    private func on<Result>(_ keychain: any Keychain, _ body: () async throws -> Result) async rethrows -> Result {
        try await CurrentKeychain.$bound.withValue(keychain, operation: body)
    }

    /// Returns whether the policy can be evaluated, and otherwise the error code.
    private func canEvaluate(_ policy: LAPolicy) -> (isPossible: Bool, code: LAError.Code?) {
        var error: NSError?
        // The variable is local, and used during the call only.
        let isPossible = unsafe context.canEvaluatePolicy(policy, error: &error)
        // The error pointer may be nil.
        #expect(unsafe context.canEvaluatePolicy(policy, error: nil) == isPossible)
        return (isPossible, (error as? LAError)?.code)
    }

    private func code(_ body: () async throws -> Bool) async -> LAError.Code? {
        do {
            return try await body() ? nil : .userFallback
        } catch {
            return (error as? LAError)?.code
        }
    }

    // MARK: Without prompts

    @Test("deviceOwnerAuthentication is available if the user can authenticate")
    func possible() {
        let keychain = RecordingAuthenticator()
        CurrentKeychain.with(keychain) {
            #expect(canEvaluate(.deviceOwnerAuthentication) == (true, nil))
        }
        #expect(Set(keychain.requiredConstraints) == [.userPresence])
        #expect(keychain.requests.isEmpty)
    }

    @Test("The reason why a policy is unavailable is reported, and the error pointer may be nil", arguments: LAErrorTests.failures)
    func obstacle(failure: KeychainFailure, code: LAError.Code) {
        CurrentKeychain.with(RecordingAuthenticator(obstacle: failure)) {
            #expect(canEvaluate(.deviceOwnerAuthentication) == (false, code))
        }
    }

    @Test(
        "A companion device is never available",
        arguments: [LAPolicy.deviceOwnerAuthenticationWithCompanion, .deviceOwnerAuthenticationWithWatch])
    func withoutCompanion(policy: LAPolicy) async {
        let keychain = RecordingAuthenticator()
        let evaluated = await on(keychain) {
            #expect(canEvaluate(policy) == (false, .companionNotAvailable))
            return await self.code { try await context.evaluatePolicy(policy, localizedReason: "open the safe") }
        }
        #expect(evaluated == .companionNotAvailable)
        #expect(keychain.requests.isEmpty)
    }

    static let biometricPolicies: [LAPolicy] = [
        .deviceOwnerAuthenticationWithBiometrics, .deviceOwnerAuthenticationWithBiometricsOrCompanion,
        .deviceOwnerAuthenticationWithBiometricsOrWatch,
    ]

    @Test("Biometric policies ask the keychain for a finger", arguments: biometricPolicies)
    func biometry(policy: LAPolicy) async throws {
        let keychain = RecordingAuthenticator()
        await on(keychain) {
            #expect(canEvaluate(policy) == (true, nil))
            #expect(await self.code { try await context.evaluatePolicy(policy, localizedReason: "open the safe") } == nil)
        }
        #expect(Set(keychain.requiredConstraints) == [.biometryAny])
        #expect(keychain.requests.map(\.constraint) == [.biometryAny])
    }

    @Test("The keychain says which biometry there is, and the state of the enrollment after a successful check")
    func biometryStatus() async {
        let keychain = RecordingAuthenticator(biometry: BiometryStatus(hasReader: true, domainState: [1, 2, 3]))
        await on(keychain) {
            #expect(context.biometryType == .touchID)
            #expect(context.evaluatedPolicyDomainState == nil)
            #expect(canEvaluate(.deviceOwnerAuthenticationWithBiometrics) == (true, nil))
            #expect(context.evaluatedPolicyDomainState == Data([1, 2, 3]))
        }
        await on(RecordingAuthenticator()) {
            #expect(context.biometryType == .none)
            #expect(canEvaluate(.deviceOwnerAuthentication) == (true, nil))
            #expect(context.evaluatedPolicyDomainState == nil)
        }
    }

    @Test("Without a keychain no policy is available, and the error describes the reason")
    func withoutKeychain() async {
        #expect(canEvaluate(.deviceOwnerAuthentication) == (false, .authenticationFailed))
        await #expect(throws: LAError(.authenticationFailed)) {
            try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
        }
        let evaluated = await on(RecordingKeychain()) {
            await self.code { try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe") }
        }
        #expect(evaluated == .authenticationFailed)
    }

    // MARK: Prompts

    @Test("A policy is evaluated with the context and the program's reason")
    func evaluated() async throws {
        let keychain = RecordingAuthenticator()
        let isSuccess = try await on(keychain) {
            try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
        }
        #expect(isSuccess)
        let request = try #require(keychain.requests.first)
        #expect(keychain.requests.count == 1)
        #expect(request.constraint == .userPresence)
        #expect(request.accessibility == nil)
        #expect(request.authentication.context === context.authentication)
        #expect(request.authentication.prompt == "open the safe")
        #expect(request.authentication.mayAsk)
    }

    @Test("A context that forbids prompts does not prompt")
    func notInteractive() async {
        context.interactionNotAllowed = true
        let keychain = RecordingAuthenticator()
        _ = await on(keychain) { await code { try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "r") } }
        #expect(keychain.requests.map(\.authentication.mayAsk) == [false])
    }

    @Test("A failed evaluation throws an LAError", arguments: LAErrorTests.failures)
    func refused(failure: KeychainFailure, code: LAError.Code) async {
        let evaluated = await on(RecordingAuthenticator(failing: failure)) {
            await self.code { try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe") }
        }
        #expect(evaluated == code)
    }

    @Test("An empty reason is rejected without a prompt")
    func emptyReason() async throws {
        let keychain = RecordingAuthenticator()
        let error = await on(keychain) {
            await #expect(throws: LAError.self) {
                try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "")
            }
        }
        #expect(error?.code == .authenticationFailed)
        #expect(error?.localizedDescription == "localizedReason is empty")
        #expect(keychain.requests.isEmpty)
    }

    @Test("An invalidated context is rejected")
    func invalidated() async {
        context.invalidate()
        let keychain = RecordingAuthenticator()
        await on(keychain) {
            #expect(canEvaluate(.deviceOwnerAuthentication) == (false, .invalidContext))
            await #expect(throws: LAError(.invalidContext)) {
                try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
            }
        }
        #expect(keychain.requests.isEmpty)
    }

    @Test("The answer to a prompt is void if its context is invalidated meanwhile", arguments: [true, false])
    func invalidatedMeanwhile(isRight: Bool) async {
        let keychain = RecordingAuthenticator { [context] _ in
            context.invalidate()
            return isRight ? nil : KeychainFailure(.userCanceled, "the person cancelled")
        }
        await on(keychain) {
            await #expect(throws: LAError(.appCancel)) {
                try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
            }
        }
    }

    @Test("The call returns before the user answers, and the reply runs on another thread, with the caller's keychain")
    func reply() async {
        let mayAnswer = Semaphore()
        let keychain = RecordingAuthenticator { _ in
            mayAnswer.wait() ? nil : KeychainFailure(.internal, "the answer was not released in time")
        }
        let replyKeychain = Mutex<(any Keychain)?>(nil)
        let (isSuccess, error, isOtherThread) = await on(keychain) {
            await withCheckedContinuation { continuation in
                let caller = ObjectIdentifier(Thread.current)
                context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe") { isSuccess, error in
                    replyKeychain.withLock { $0 = CurrentKeychain.bound }
                    continuation.resume(returning: (isSuccess, error as? LAError, ObjectIdentifier(Thread.current) != caller))
                }
                // Reached before the user answers.
                mayAnswer.signal()
            }
        }
        #expect(isSuccess)
        #expect(error == nil)
        #expect(isOtherThread)
        #expect(replyKeychain.withLock { $0 as? RecordingAuthenticator } === keychain)
    }

    @Test("Many evaluations can wait concurrently, without blocking the threads of Swift's tasks")
    func manyAtOnce() async throws {
        let count = 64
        let allAsked = Barrier(count: count)
        let keychain = RecordingAuthenticator { _ in allAsked.arriveAndWait() ? nil : KeychainFailure(.internal, "not all were asked") }
        try await on(keychain) {
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<count {
                    group.addTask { try await LAContext().evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe") }
                }
                for try await isSuccess in group { #expect(isSuccess) }
            }
        }
        #expect(keychain.requests.count == count)
    }

    // MARK: Access control

    private func control(_ flags: SecAccessControlCreateFlags) throws -> SecAccessControl {
        try makeAccessControl(kSecAttrAccessibleWhenUnlockedThisDeviceOnly, flags)
    }

    @Test(
        "Using an item prompts for the constraints of its access control",
        arguments: [SecAccessControlCreateFlags.userPresence, .devicePasscode, .applicationPassword, [.biometryAny, .or, .devicePasscode]])
    func useItem(flags: SecAccessControlCreateFlags) async throws {
        let control = try control(flags)
        let keychain = RecordingAuthenticator()
        let isSuccess = try await on(keychain) {
            try await context.evaluateAccessControl(control, operation: .useItem, localizedReason: "open the safe")
        }
        #expect(isSuccess)
        #expect(keychain.requests.map(\.constraint) == [control.accessControl.constraint])
        #expect(keychain.requests.map(\.accessibility) == [.whenUnlockedThisDeviceOnly])
        #expect(keychain.requests.map(\.authentication.prompt) == ["open the safe"])
    }

    @Test("Adding an item prompts only for the application password; the other constraints need only be satisfiable")
    func createItem() async throws {
        for (flags, asked) in [
            ([.userPresence], []), ([.applicationPassword], [.applicationPassword]),
            ([.userPresence, .applicationPassword], [.applicationPassword]),
        ] as [(SecAccessControlCreateFlags, [AccessControl.Constraint])] {
            let control = try control(flags)
            let keychain = RecordingAuthenticator()
            try await on(keychain) {
                _ = try await context.evaluateAccessControl(control, operation: .createItem, localizedReason: "open the safe")
            }
            #expect(keychain.requests.map(\.constraint) == asked)
            #expect(keychain.requiredConstraints == [control.accessControl.constraint].compactMap { $0 })
        }
        let control = try control(.userPresence)
        let unattended = RecordingAuthenticator(obstacle: KeychainFailure(.interactionNotAllowed, "no terminal", refusal: .notInteractive))
        let isSuccess = try await on(unattended) {
            try await context.evaluateAccessControl(control, operation: .createItem, localizedReason: "open the safe")
        }
        #expect(isSuccess)
        let impossible = RecordingAuthenticator(obstacle: KeychainFailure(.authFailed, "none is set", refusal: .passcodeNotSet))
        await on(impossible) {
            await #expect(throws: LAError(.passcodeNotSet)) {
                try await context.evaluateAccessControl(control, operation: .createItem, localizedReason: "open the safe")
            }
        }
    }

    @Test("Access control without constraints succeeds without a prompt")
    func unconstrained() async throws {
        let control = try control([])
        let keychain = RecordingAuthenticator()
        for operation in [LAAccessControlOperation.useItem, .createItem] {
            try await on(keychain) {
                _ = try await context.evaluateAccessControl(control, operation: operation, localizedReason: "open the safe")
            }
        }
        #expect(keychain.requests.isEmpty)
    }

    @Test(
        "Operations on keys are rejected",
        arguments: [LAAccessControlOperation.createKey, .useKeySign, .useKeyDecrypt, .useKeyKeyExchange])
    func keys(operation: LAAccessControlOperation) async throws {
        let keychain = RecordingAuthenticator()
        for (control, operation) in [(try control(.userPresence), operation), (try control(.privateKeyUsage), .useItem)] {
            await on(keychain) {
                await #expect(throws: LAError(.authenticationFailed)) {
                    try await context.evaluateAccessControl(control, operation: operation, localizedReason: "open the safe")
                }
            }
        }
        #expect(keychain.requests.isEmpty)
    }

    @Test("The form with a reply has the same result")
    func accessControlReply() async throws {
        let control = try control(.userPresence)
        let error = await on(RecordingAuthenticator(failing: KeychainFailure(.userCanceled, "the person cancelled"))) {
            await withCheckedContinuation { continuation in
                context.evaluateAccessControl(control, operation: .useItem, localizedReason: "open the safe") { isSuccess, error in
                    continuation.resume(returning: isSuccess ? nil : error as? LAError)
                }
            }
        }
        #expect(error?.code == .userCancel)
    }

    // MARK: Derived contexts

    @Test("A subclass of LAContext replies once, with the result of the form without a reply")
    func derived() async throws {
        #expect(try await TalkativeContext().evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe"))
    }
}

/// Replies more than once.
private final class TalkativeContext: LAContext, @unchecked Sendable {
    // Unchecked, as its superclass is; it adds nothing.

    override func evaluatePolicy(
        _ policy: LAPolicy, localizedReason: String, reply: @escaping @Sendable (Bool, (any Error)?) -> Void
    ) {
        reply(true, nil)
        reply(false, LAError(.userCancel))
    }
}

/// A semaphore for the threads of a test, with a timeout.
private final class Semaphore: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func signal() {
        semaphore.signal()
    }

    /// Returns whether it was signaled before the timeout.
    func wait() -> Bool {
        semaphore.wait(timeout: .now() + .seconds(30)) == .success
    }
}

/// A barrier at which a number of threads wait for the last of them.
private final class Barrier: Sendable {
    private let missing: Mutex<Int>
    private let semaphore = DispatchSemaphore(value: 0)
    private let count: Int

    init(count: Int) {
        self.count = count
        missing = Mutex(count)
    }

    /// Returns whether all threads arrived before the timeout.
    func arriveAndWait() -> Bool {
        let isLast = missing.withLock { missing in
            missing -= 1
            return missing == 0
        }
        if isLast { for _ in 0..<count { semaphore.signal() } }
        return semaphore.wait(timeout: .now() + .seconds(30)) == .success
    }
}
