// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: NeverForceUnwrap
// Idioms of existing programs, unchanged.

import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

// No passcode is set in these tests and no prompt can be shown, so every evaluation fails with an error.
@Suite("Idioms of code that authenticates the user", .inMemoryKeychain)
struct LocalAuthenticationIdiomTests {
    @Test("`canEvaluatePolicy(_:error:)` with a variable, and with nil")
    func canEvaluate() {
        let context = LAContext()
        var error: NSError?
        if context.canEvaluatePolicy(.deviceOwnerAuthentication, error: &error) {
            Issue.record("the user cannot authenticate in this test")
        } else if let error = error {
            #expect(error.domain == LAErrorDomain)
            #expect(error.code == LAError.passcodeNotSet.rawValue)
            #expect(error.code == LAError.Code.passcodeNotSet.rawValue)
            #expect(LAError.Code(rawValue: error.code) == .passcodeNotSet)
            #expect((error as? LAError)?.code == .passcodeNotSet)
            switch error.code {
            case LAError.biometryNotEnrolled.rawValue: Issue.record("there is no biometry")
            case LAError.passcodeNotSet.rawValue: break
            default: Issue.record("another code")
            }
        }
        #expect(!context.canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, error: nil))
    }

    @Test("`evaluatePolicy(_:localizedReason:reply:)` with a trailing closure that dispatches to a queue")
    func reply() async {
        let code: LAError.Code? = await withCheckedContinuation { continuation in
            let context = LAContext()
            context.localizedFallbackTitle = ""
            context.localizedCancelTitle = "Not now"
            context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "Unlock the safe") { success, authenticationError in
                DispatchQueue.global().async {
                    if success {
                        continuation.resume(returning: nil)
                    } else {
                        continuation.resume(returning: (authenticationError as? LAError)?.code)
                    }
                }
            }
        }
        #expect(code == .passcodeNotSet)
    }

    @Test("`try await evaluatePolicy`, with every way to catch its errors")
    func asynchronous() async {
        let context = LAContext()
        do {
            try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "Unlock the safe")
            Issue.record("the user cannot authenticate in this test")
        } catch LAError.userCancel, LAError.appCancel {
            Issue.record("no prompt was shown that could be canceled")
        } catch let error as LAError {
            switch error.code {
            case .userFallback: Issue.record("there is no fallback")
            case .passcodeNotSet: #expect(!error.localizedDescription.isEmpty)
            default: Issue.record("another code")
            }
        } catch {
            Issue.record("another error")
        }
        do {
            guard try await context.evaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, localizedReason: "Unlock") else { return }
        } catch let error as NSError {
            #expect(error.domain == LAError.errorDomain)
            #expect(error.code == LAError.Code.biometryNotAvailable.rawValue)
        }
        do {
            _ = try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "Unlock")
        } catch {
            guard case LAError.passcodeNotSet = error else {
                Issue.record("another error")
                return
            }
            #expect(LAError(_nsError: error as NSError).code == .passcodeNotSet)
        }
    }

    @Test("The kind of biometry, with the `@unknown default` that Apple's compiler requires")
    func biometryType() {
        let context = LAContext()
        _ = context.canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, error: nil)
        let name: String
        switch context.biometryType {
        case .touchID: name = "Touch ID"
        case .faceID: name = "Face ID"
        case .none: name = "none"
        default: name = "unknown"
        }
        #expect(name == "none")
        #expect(context.evaluatedPolicyDomainState == nil)
    }

    @Test("A context in a query, with a correct and a wrong application password")
    func applicationPassword() {
        let accessControl = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, .applicationPassword, nil)!
        let context = LAContext()
        context.setCredential("open sesame".data(using: .utf8), type: .applicationPassword)
        context.interactionNotAllowed = true
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: "Skroob",
            kSecAttrAccessControl as String: accessControl, kSecUseAuthenticationContext as String: context,
            kSecValueData as String: Data([1, 2, 3, 4, 5]),
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
        var query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecReturnData as String: true,
            kSecUseAuthenticationContext as String: context, kSecUseOperationPrompt as String: "Open the safe",
        ]
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        #expect(result as? Data == Data([1, 2, 3, 4, 5]))
        #expect(context.setCredential(Data([0]), type: .applicationPassword))
        #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecAuthFailed)
        #expect(!context.isCredentialSet(.applicationPassword))
        context.invalidate()
        #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecAuthFailed)
        query[kSecUseAuthenticationContext as String] = nil
        query[kSecUseAuthenticationUI as String] = kSecUseAuthenticationUIFail
        #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecInteractionNotAllowed)
        query[kSecUseAuthenticationUI as String] = kSecUseAuthenticationUISkip
        #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecItemNotFound)
    }

    @Test("Evaluating an access control, with a reply and without")
    func accessControl() async throws {
        let accessControl = SecAccessControlCreateWithFlags(
            nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, [.biometryAny, .or, .devicePasscode], nil)!
        let context = LAContext()
        context.touchIDAuthenticationAllowableReuseDuration = LATouchIDAuthenticationMaximumAllowableReuseDuration
        let isSuccess: Bool = await withCheckedContinuation { continuation in
            context.evaluateAccessControl(accessControl, operation: .useItem, localizedReason: "Open the safe") { success, _ in
                continuation.resume(returning: success)
            }
        }
        #expect(!isSuccess)
        await #expect(throws: LAError.self) {
            try await context.evaluateAccessControl(accessControl, operation: .useItem, localizedReason: "Open the safe")
        }
    }

    @Test("A subclass of LAContext for tests, which does not prompt")
    func derived() async throws {
        let context = GrantingContext()
        #expect(context.canEvaluatePolicy(.deviceOwnerAuthentication, error: nil))
        #expect(try await context.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "Unlock the safe"))
        #expect(context.reasons == ["Unlock the safe"])
    }
}

/// A context as programs declare it for their tests.
private final class GrantingContext: LAContext, @unchecked Sendable {
    // Unchecked: used by one test alone.
    var reasons: [String] = []

    override func canEvaluatePolicy(_ policy: LAPolicy, error: NSErrorPointer) -> Bool { true }

    override func evaluatePolicy(
        _ policy: LAPolicy, localizedReason: String, reply: @escaping @Sendable (Bool, (any Error)?) -> Void
    ) {
        reasons.append(localizedReason)
        reply(true, nil)
    }
}
