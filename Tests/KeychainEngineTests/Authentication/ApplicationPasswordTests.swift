// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting
import Testing

@Suite("Items under an application password")
struct ApplicationPasswordTests {
    private func context(_ password: String?) throws -> AuthenticationContext {
        let context = AuthenticationContext()
        if let password { context.setApplicationPassword(ApplicationPassword(try Passcode(text: password).bytesForTest())) }
        return context
    }

    @Test("The right password opens them, without a question and without a passcode")
    func right() throws {
        try ProtectedItems.inEveryKeychain(withPasscode: false) { items in
            let first = try context("spaceballs")
            try items.add("safe", .applicationPassword, .whenUnlocked, authentication: Authentication(context: first))
            #expect(try items.read("safe", Authentication(interaction: .forbidden, context: first)) == ["12345"])
            let second = try context("spaceballs")
            #expect(try items.read("safe", Authentication(interaction: .forbidden, context: second)) == ["12345"])
            #expect(items.person.questions.isEmpty)
        }
    }

    @Test("A wrong one is taken away and asked for again; without anybody to ask it is refused")
    func wrong() throws {
        try ProtectedItems.inEveryKeychain(withPasscode: false) { items in
            try items.add("safe", .applicationPassword, .whenUnlocked, authentication: Authentication(context: try context("spaceballs")))
            let wrong = try context("wrong")
            #expect(items.readStatus("safe", Authentication(interaction: .forbidden, context: wrong)) == .authFailed)
            #expect(wrong.applicationPassword == nil)
            #expect(items.readStatus("safe", Authentication(interaction: .forbidden, context: wrong)) == .interactionNotAllowed)
            items.person.then(.type("wrong"), .type("spaceballs"))
            #expect(try items.read("safe", Authentication(context: try context("wrong"))) == ["12345"])
            #expect(items.person.questions.map(\.secret) == [.applicationPassword, .applicationPassword])
            items.person.then(.type("a"), .type("b"), .type("c"), .type("spaceballs"))
            #expect(items.readStatus() == .authFailed)
            #expect(items.person.remainingCount == 1)
        }
    }

    @Test("The same text typed on two systems is the same password")
    func normalization() throws {
        try ProtectedItems.inEveryKeychain(withPasscode: false) { items in
            let composed = AuthenticationContext()
            composed.setApplicationPassword(
                try ApplicationPassword.given("caf\u{E9}"))
            try items.add("safe", .applicationPassword, .whenUnlocked, authentication: Authentication(context: composed))
            items.person.then(.type("cafe\u{301}"))
            #expect(try items.read() == ["12345"])
        }
    }

    @Test("A new item's password is asked for where none is at hand, as a new one")
    func new() throws {
        try ProtectedItems.inEveryKeychain(withPasscode: false) { items in
            items.person.then(.type("spaceballs"))
            try items.add("safe", .applicationPassword, .whenUnlocked)
            #expect(items.person.questions.map(\.secret) == [.newApplicationPassword])
            items.person.then(.cancel)
            #expect(
                items.status { () throws(KeychainFailure) in try items.add("other", .applicationPassword, .whenUnlocked) } == .userCanceled)
            #expect(items.readStatus("other", .forbidden) == .itemNotFound)
            items.person.then(.type("spaceballs"))
            #expect(try items.read() == ["12345"])
        }
    }

    @Test("Passcode and password together are both needed, and each is asked for")
    func both() throws {
        try ProtectedItems.inEveryKeychain { items in
            try items.add(
                "safe", .all([.userPresence, .applicationPassword]), authentication: Authentication(context: try context("spaceballs")))
            let password = try context("spaceballs")
            #expect(items.readStatus("safe", Authentication(interaction: .forbidden, context: password)) == .interactionNotAllowed)
            items.person.then(.type(ProtectedItems.passcode), .type("spaceballs"))
            #expect(try items.read() == ["12345"])
            #expect(items.person.questions.map(\.secret) == [.passcode, .applicationPassword])
            // Nothing but its number can be told of an item that a password of somebody's protects.
            let removal = try items.keychain.passcodeRemoval(try Passcode(text: ProtectedItems.passcode))
            #expect(removal.items.map(\.name) == [nil])
        }
    }
}

extension Passcode {
    fileprivate consuming func bytesForTest() throws -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe bytes.withBytes { try unsafe SecretBytes(copying: $0) }
    }
}
