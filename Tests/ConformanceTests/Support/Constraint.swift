// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTesting
import Testing

#if !canImport(Darwin)
/// Access control that can be satisfied here, as the rows of tables, with what satisfies it.
enum Constraint: CaseIterable, Sendable {
    case userPresence
    case devicePasscode
    case biometryOrPasscode
    case applicationPassword
    case presenceAndPassword

    static let password = "open sesame"

    var flags: SecAccessControlCreateFlags {
        switch self {
        case .userPresence: .userPresence
        case .devicePasscode: .devicePasscode
        case .biometryOrPasscode: [.biometryAny, .or, .devicePasscode]
        case .applicationPassword: .applicationPassword
        case .presenceAndPassword: [.userPresence, .applicationPassword]
        }
    }

    var needsPasscode: Bool { self != .applicationPassword }
    var needsPassword: Bool { self == .applicationPassword || self == .presenceAndPassword }

    /// The questions of the prompts, in order.
    var secrets: [InMemoryKeychain.Question.Secret] {
        (needsPasscode ? [.passcode] : []) + (needsPassword ? [.applicationPassword] : [])
    }

    /// Scripts the person's answers to all prompts of an item.
    func satisfy() throws {
        let person = try #require(InMemoryKeychain.current).person
        if needsPasscode { person.answers(.correctPasscode) }
        if needsPassword { person.answers(.text(Self.password)) }
    }

    /// An item that has it.
    func item(_ account: String = "account") throws -> ItemDictionary {
        Item.generic(account).with(kSecAttrAccessControl, try accessControl(kSecAttrAccessibleWhenUnlocked, flags))
    }

    /// Stores that item in a keychain with a passcode, without a prompt.
    func store() throws {
        let keychain = try #require(InMemoryKeychain.current)
        let questionCount = keychain.person.questions.count
        try keychain.setPasscode("swordfish")
        #expect(add(try item().with(kSecUseAuthenticationContext, contextWithPassword())).status == errSecSuccess)
        #expect(keychain.person.questions.count == questionCount)
    }
}

/// A context that has the application password of `Constraint`, or another.
func contextWithPassword(_ password: String = Constraint.password) -> LAContext {
    let context = LAContext()
    context.setCredential(Data(password.utf8), type: .applicationPassword)
    return context
}
#endif

/// An access control object, or the test's failure.
func accessControl(_ protection: CFString, _ flags: SecAccessControlCreateFlags) throws -> SecAccessControl {
    let control = SecAccessControlCreateWithFlags(kCFAllocatorDefault, protection, flags, nil)
    return try #require(control)
}
