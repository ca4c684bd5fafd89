// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Synchronization
import Testing

@testable import SecurityAPI

@Suite("LAContext")
struct LAContextTests {
    // MARK: Settings

    @Test("A new context has default values and allows prompts")
    func defaults() {
        let context = LAContext()
        #expect(context.localizedReason == "")
        #expect(context.localizedCancelTitle == nil)
        #expect(context.localizedFallbackTitle == nil)
        #expect(!context.interactionNotAllowed)
        #expect(context.touchIDAuthenticationAllowableReuseDuration == 0)
        #expect(context.biometryType == .none)
        #expect(context.evaluatedPolicyDomainState == nil)
        #expect(!context.isCredentialSet(.applicationPassword))
        let settings = context.authentication.settings
        #expect(settings == AuthenticationContext.Settings())
    }

    @Test("Properties are passed to the prompt")
    func settings() {
        let context = LAContext()
        context.localizedReason = "open the safe"
        context.localizedCancelTitle = "Not now"
        context.localizedFallbackTitle = "Passcode"
        context.interactionNotAllowed = true
        let settings = context.authentication.settings
        #expect(settings.reason == "open the safe")
        #expect(settings.cancelTitle == "Not now")
        #expect(!settings.isInteractionAllowed)
        #expect(context.localizedFallbackTitle == "Passcode")
        context.localizedReason = ""
        #expect(context.authentication.settings.reason == nil)
        #expect(context.localizedReason == "")
    }

    private static let durations: [(set: TimeInterval, seconds: Double?, shown: TimeInterval)] = [
        (0, nil, 0), (-1, nil, 0), (.nan, nil, 0), (10, 10, 10), (300, 300, 300), (301, 300, 300), (.infinity, 300, 300),
    ]

    @Test("The reuse duration is at most 300 seconds; 0 and invalid values mean no limit", arguments: durations)
    func reuseDuration(set: TimeInterval, seconds: Double?, shown: TimeInterval) {
        let context = LAContext()
        context.touchIDAuthenticationAllowableReuseDuration = set
        #expect(context.authentication.settings.reuseSeconds == seconds)
        #expect(context.touchIDAuthenticationAllowableReuseDuration == shown)
        #expect(LATouchIDAuthenticationMaximumAllowableReuseDuration == 300)
    }

    @Test("Properties set concurrently are all stored")
    func concurrentSettings() async {
        for _ in 0..<50 {
            let context = LAContext()
            await withTaskGroup(of: Void.self) { group in
                group.addTask { context.localizedReason = "reason" }
                group.addTask { context.localizedCancelTitle = "cancel" }
                group.addTask { context.interactionNotAllowed = true }
                group.addTask { context.touchIDAuthenticationAllowableReuseDuration = 7 }
            }
            #expect(context.localizedReason == "reason")
            #expect(context.localizedCancelTitle == "cancel")
            #expect(context.interactionNotAllowed)
            #expect(context.touchIDAuthenticationAllowableReuseDuration == 7)
        }
    }

    // MARK: Credentials

    @Test("An application password can be set, replaced and removed")
    func credential() throws {
        let context = LAContext()
        #expect(context.setCredential(Data("hunter2".utf8), type: .applicationPassword))
        #expect(context.isCredentialSet(.applicationPassword))
        let password = try #require(context.authentication.applicationPassword)
        // The bytes are compared within the closure.
        #expect(unsafe password.bytes.withBytes { unsafe Array($0) } == Array("hunter2".utf8))
        #expect(context.setCredential(Data([0, 255]), type: .applicationPassword))
        #expect(context.authentication.applicationPassword !== password)
        #expect(context.setCredential(nil, type: .applicationPassword))
        #expect(!context.isCredentialSet(.applicationPassword))
    }

    @Test("An empty password and other credential types are rejected, and change nothing")
    func refusedCredentials() {
        let context = LAContext()
        #expect(!context.setCredential(Data(), type: .applicationPassword))
        #expect(!context.isCredentialSet(.applicationPassword))
        context.setCredential(Data("hunter2".utf8), type: .applicationPassword)
        #expect(!context.setCredential(Data(), type: .applicationPassword))
        #expect(!context.setCredential(Data("1234".utf8), type: .smartCardPIN))
        #expect(!context.setCredential(nil, type: .smartCardPIN))
        #expect(!context.isCredentialSet(.smartCardPIN))
        #expect(context.isCredentialSet(.applicationPassword))
    }

    @Test("A slice of data is accepted without the rest of its buffer")
    func slicedCredential() throws {
        let context = LAContext()
        #expect(context.setCredential(Data("xxhunter2".utf8).dropFirst(2), type: .applicationPassword))
        let password = try #require(context.authentication.applicationPassword)
        // The bytes are compared within the closure.
        #expect(unsafe password.bytes.withBytes { unsafe Array($0) } == Array("hunter2".utf8))
    }

    @Test("An invalidated context has no credential and accepts none")
    func invalidatedCredentials() {
        let context = LAContext()
        context.setCredential(Data("hunter2".utf8), type: .applicationPassword)
        context.invalidate()
        #expect(!context.isCredentialSet(.applicationPassword))
        #expect(!context.setCredential(Data("hunter2".utf8), type: .applicationPassword))
        #expect(!context.isCredentialSet(.applicationPassword))
    }
}

@Suite("LAError")
struct LAErrorTests {
    private func fail(_ error: any Error) throws {
        throw error
    }

    private static let numbers: [(code: LAError.Code, number: Int)] = [
        (LAError.authenticationFailed, -1), (LAError.userCancel, -2), (LAError.userFallback, -3), (LAError.systemCancel, -4),
        (LAError.passcodeNotSet, -5), (LAError.biometryNotAvailable, -6), (LAError.biometryNotEnrolled, -7),
        (LAError.biometryLockout, -8), (LAError.appCancel, -9), (LAError.invalidContext, -10), (LAError.companionNotAvailable, -11),
        (LAError.watchNotAvailable, -11), (LAError.biometryNotPaired, -12), (LAError.biometryDisconnected, -13),
        (LAError.invalidDimensions, -14), (LAError.notInteractive, -1004), (LAError.touchIDNotAvailable, -6),
        (LAError.touchIDNotEnrolled, -7), (LAError.touchIDLockout, -8),
    ]

    @Test("Codes have the same numbers as on Apple platforms", arguments: numbers)
    func codes(code: LAError.Code, number: Int) {
        #expect(code.rawValue == number)
        #expect(LAError(code).errorCode == number)
        #expect(LAError(code).code == code)
        #expect(!LAError(code).localizedDescription.isEmpty)
    }

    @Test("An error can be caught by its code: `catch LAError.userCancel`")
    func caughtByCode() throws {
        do {
            try fail(LAError(.userCancel))
        } catch LAError.passcodeNotSet {
            Issue.record("another code")
        } catch LAError.userCancel {
            return
        }
    }

    @Test("An error can be caught by its type, and switched over: `catch let error as LAError`")
    func caughtByType() throws {
        do {
            try fail(LAError(.userCancel, userInfo: ["key": "value"]))
        } catch let error as LAError where error.code == .passcodeNotSet {
            Issue.record("another code")
        } catch let error as LAError {
            #expect(error.code == .userCancel)
            #expect(error.userInfo["key"] as? String == "value")
            switch error {
            case LAError.userCancel: return
            default: Issue.record("not told by its code")
            }
        }
    }

    @Test("An error converts to an NSError of the same domain and code, and back")
    func foundation() throws {
        let error: any Error = LAError(.biometryLockout)
        let object = error as NSError
        #expect(object.domain == LAErrorDomain)
        #expect(object.domain == "com.apple.LocalAuthentication")
        #expect(object.domain == LAError.errorDomain)
        #expect(object.code == -8)
        #expect(object.localizedDescription == LAError(.biometryLockout).localizedDescription)
        #expect((object as? LAError)?.code == .biometryLockout)
        #expect(object as any Error as? LAError == LAError(.biometryLockout))
        #expect(LAError(_nsError: object).code == .biometryLockout)
        do {
            try fail(NSError(domain: LAErrorDomain, code: -4))
        } catch LAError.systemCancel {
            return
        }
    }

    @Test("An error of another domain is not an LAError, whatever its code")
    func otherDomain() {
        let other = NSError(domain: NSCocoaErrorDomain, code: -2)
        #expect(other as? LAError == nil)
        #expect(!(LAError.Code.userCancel ~= other))
        #expect(!(LAError.Code.userCancel ~= URLError(.badURL)))
    }

    @Test("An unknown code is read as authenticationFailed, and its number is preserved")
    func unknownCode() {
        let error = LAError(_nsError: NSError(domain: LAErrorDomain, code: -4711))
        #expect(error.code == .authenticationFailed)
        #expect(error.errorCode == -4711)
        #expect(LAError.Code(rawValue: -4711) == nil)
    }

    @Test("Errors are equal if their codes are equal")
    func equality() {
        #expect(LAError(.userCancel) == LAError(.userCancel, userInfo: ["key": "value"]))
        #expect(LAError(.userCancel) != LAError(.appCancel))
        #expect(Set([LAError(.userCancel), LAError(.userCancel), LAError(.appCancel)]).count == 2)
    }

    static let failures: [(KeychainFailure, LAError.Code)] = [
        (KeychainFailure(.userCanceled, "x"), .userCancel),
        (KeychainFailure(.authFailed, "x", refusal: .passcodeNotSet), .passcodeNotSet),
        (KeychainFailure(.authFailed, "x", refusal: .wrongPasscode), .authenticationFailed),
        (KeychainFailure(.authFailed, "x", refusal: .wrongPassword), .authenticationFailed),
        (KeychainFailure(.authFailed, "x", refusal: .lockedOut(seconds: 5)), .biometryLockout),
        (KeychainFailure(.interactionNotAllowed, "x", refusal: .timedOut), .systemCancel),
        (KeychainFailure(.authFailed, "x", refusal: .timedOut), .systemCancel),
        (KeychainFailure(.interactionNotAllowed, "x", refusal: .notInteractive), .notInteractive),
        (KeychainFailure(.interactionNotAllowed, "x"), .notInteractive),
        (KeychainFailure(.authFailed, "x", refusal: .biometryNotAvailable), .biometryNotAvailable),
        (KeychainFailure(.authFailed, "x", refusal: .invalidContext), .invalidContext),
    ]

    // Section 9.4 of SecItem-behavior.md in KeychainServices.docc.
    @Test("Section 9.4: failures of the keychain have a code", arguments: failures)
    func failure(failure: KeychainFailure, code: LAError.Code) throws {
        let error = LAError(failure)
        #expect(error.code == code)
        let underlying = try #require(error.userInfo[NSUnderlyingErrorKey] as? NSError)
        #expect(underlying.domain == NSOSStatusErrorDomain)
        #expect(underlying.code == Int(failure.status.rawValue))
    }

    @Test(
        "A failure without a code is authenticationFailed with a description",
        arguments: [KeychainStatus.notAvailable, .inputOutput, .authFailed])
    func otherFailure(status: KeychainStatus) {
        let error = LAError(KeychainFailure(status, "the store is on the moon"))
        #expect(error.code == .authenticationFailed)
        #expect(error.localizedDescription == "the store is on the moon")
    }
}
