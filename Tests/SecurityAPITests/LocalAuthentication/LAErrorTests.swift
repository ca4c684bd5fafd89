// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

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

    @Test("Codes have Apple's numbers", arguments: numbers)
    func codes(code: LAError.Code, number: Int) {
        #expect(code.rawValue == number)
        #expect(LAError(code).errorCode == number)
        #expect(LAError(code).code == code)
        #expect(!LAError(code).localizedDescription.isEmpty)
    }

    @Test("Caught by its code: `catch LAError.userCancel`")
    func caughtByCode() throws {
        do {
            try fail(LAError(.userCancel))
        } catch LAError.passcodeNotSet {
            Issue.record("another code")
        } catch LAError.userCancel {
            return
        }
    }

    @Test("Caught by its type: `catch let error as LAError`, and switched over")
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

    @Test("An NSError of the same domain and code, both ways")
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

    @Test("An error of another domain is none, whatever its code")
    func otherDomain() {
        let other = NSError(domain: NSCocoaErrorDomain, code: -2)
        #expect(other as? LAError == nil)
        #expect(!(LAError.Code.userCancel ~= other))
        #expect(!(LAError.Code.userCancel ~= URLError(.badURL)))
    }

    @Test("A code nobody knows is a failed authentication, and keeps its number")
    func unknownCode() {
        let error = LAError(_nsError: NSError(domain: LAErrorDomain, code: -4711))
        #expect(error.code == .authenticationFailed)
        #expect(error.errorCode == -4711)
        #expect(LAError.Code(rawValue: -4711) == nil)
    }

    @Test("Two are equal when their codes are")
    func equality() {
        #expect(LAError(.userCancel) == LAError(.userCancel, userInfo: ["key": "value"]))
        #expect(LAError(.userCancel) != LAError(.appCancel))
        #expect(Set([LAError(.userCancel), LAError(.userCancel), LAError(.appCancel)]).count == 2)
    }

    static let failures: [(KeychainFailure, LAError.Code)] = [
        (KeychainFailure(.userCanceled, "x"), .userCancel),
        (KeychainFailure(.authFailed, "x", refusal: .passcodeNotSet), .passcodeNotSet),
        (KeychainFailure(.authFailed, "x", refusal: .wrong), .authenticationFailed),
        (KeychainFailure(.authFailed, "x", refusal: .lockedOut(seconds: 5)), .biometryLockout),
        (KeychainFailure(.interactionNotAllowed, "x", refusal: .timedOut), .systemCancel),
        (KeychainFailure(.authFailed, "x", refusal: .timedOut), .systemCancel),
        (KeychainFailure(.interactionNotAllowed, "x", refusal: .notInteractive), .notInteractive),
        (KeychainFailure(.interactionNotAllowed, "x"), .notInteractive),
        (KeychainFailure(.authFailed, "x", refusal: .biometryNotAvailable), .biometryNotAvailable),
        (KeychainFailure(.authFailed, "x", refusal: .invalidContext), .invalidContext),
    ]

    @Test("Section 9.4: what the keychain answers has a code", arguments: failures)
    func failure(failure: KeychainFailure, code: LAError.Code) throws {
        let error = LAError(failure)
        #expect(error.code == code)
        let underlying = try #require(error.userInfo[NSUnderlyingErrorKey] as? NSError)
        #expect(underlying.domain == NSOSStatusErrorDomain)
        #expect(underlying.code == Int(failure.status.rawValue))
    }

    @Test("What has no code is a failed authentication that says why", arguments: [KeychainStatus.notAvailable, .inputOutput, .authFailed])
    func otherFailure(status: KeychainStatus) {
        let error = LAError(KeychainFailure(status, "the store is on the moon"))
        #expect(error.code == .authenticationFailed)
        #expect(error.localizedDescription == "the store is on the moon")
    }
}
