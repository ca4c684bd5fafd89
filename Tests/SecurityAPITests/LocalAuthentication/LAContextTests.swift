// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Synchronization
import Testing

@testable import SecurityAPI

@Suite("LAContext")
struct LAContextTests {
    // MARK: Settings

    @Test("A new context says nothing and allows everything")
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

    @Test("What is set reaches whoever asks")
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

    @Test("One answer serves for so many seconds, at most 300; 0 and what makes no sense are no limit", arguments: durations)
    func reuseDuration(set: TimeInterval, seconds: Double?, shown: TimeInterval) {
        let context = LAContext()
        context.touchIDAuthenticationAllowableReuseDuration = set
        #expect(context.authentication.settings.reuseSeconds == seconds)
        #expect(context.touchIDAuthenticationAllowableReuseDuration == shown)
        #expect(LATouchIDAuthenticationMaximumAllowableReuseDuration == 300)
    }

    @Test("Settings made by many threads at once are all kept")
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

    @Test("An application password is set, replaced and taken away")
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

    @Test("An empty password and another type are not taken, and change nothing")
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

    @Test("A slice of data is taken as it is")
    func slicedCredential() throws {
        let context = LAContext()
        #expect(context.setCredential(Data("xxhunter2".utf8).dropFirst(2), type: .applicationPassword))
        let password = try #require(context.authentication.applicationPassword)
        // The bytes are compared within the closure.
        #expect(unsafe password.bytes.withBytes { unsafe Array($0) } == Array("hunter2".utf8))
    }

    @Test("An invalidated context has no credential and takes none")
    func invalidatedCredentials() {
        let context = LAContext()
        context.setCredential(Data("hunter2".utf8), type: .applicationPassword)
        context.invalidate()
        #expect(!context.isCredentialSet(.applicationPassword))
        #expect(!context.setCredential(Data("hunter2".utf8), type: .applicationPassword))
        #expect(!context.isCredentialSet(.applicationPassword))
    }
}
