// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Items that require biometry")
struct BiometryTests {
    /// A keychain with a passcode, a reader, and a person.
    private func withReader(
        withPasscode: Bool = true, _ body: (ProtectedItems, LocalKeychain, StubReader, TouchingPerson) throws -> Void
    ) throws {
        try ProtectedItems.inFile(withPasscode: withPasscode) { items, plain in
            let reader = StubReader()
            let person = TouchingPerson(reader)
            let keychain = plain.with(entitlements: plain.entitlements, prompter: person, biometry: reader)
            try body(ProtectedItems(keychain: keychain, person: items.person), keychain, reader, person)
        }
    }

    private static let refused = BiometricScanOutcome.refused(
        KeychainFailure(.authFailed, "the finger was not recognized", refusal: .biometryNotRecognized))

    @Test(
        "Adding does not prompt; each read asks for a finger once, and no passcode",
        arguments: [AccessControl.Constraint.biometryAny, .biometryCurrentSet])
    func reads(constraint: AccessControl.Constraint) throws {
        try withReader { items, _, reader, person in
            try items.add("safe", constraint)
            #expect(person.questions.isEmpty)
            for _ in 0..<2 {
                person.then(.touch())
                #expect(try items.read() == ["12345"])
            }
            #expect(person.questions.map(\.secret) == [.fingerprint, .fingerprint])
            #expect(reader.scanCount == 2)
            // Without a person, nothing is scanned.
            #expect(items.readStatus() == .interactionNotAllowed)
            #expect(items.readStatus("safe", .forbidden) == .interactionNotAllowed)
            #expect(items.readStatus("safe", .skipping) == .itemNotFound)
            #expect(reader.scanCount == 2)
        }
    }

    @Test("Without something that verifies fingers, such items are neither stored nor read")
    func embedded() throws {
        try withReader { items, keychain, _, _ in
            try items.add("safe", .biometryAny)
            let plain = keychain.with(entitlements: keychain.entitlements)
            let embedded = ProtectedItems(keychain: plain, person: items.person)
            let refusal = #expect(throws: KeychainFailure.self) { try embedded.add("other", .biometryAny) }
            #expect(refusal?.status == .authFailed && refusal?.refusal == .biometryNotAvailable)
            let unreadable = #expect(throws: KeychainFailure.self) { try embedded.read() }
            #expect(unreadable?.status == .authFailed && unreadable?.refusal == .biometryNotAvailable)
            #expect(try plain.biometryStatus() == BiometryStatus())
        }
    }

    @Test("Another set of fingers destroys the key of the former set, and no other")
    func otherSet() throws {
        try withReader { items, keychain, reader, person in
            try items.add("any", .biometryAny)
            try items.add("set", .biometryCurrentSet)
            try items.add("either", .any([.biometryCurrentSet, .devicePasscode]))
            reader.enroll(2)
            #expect(items.readStatus("set") == .itemNotFound)
            #expect(items.readStatus("set", .forbidden) == .itemNotFound)
            #expect(person.questions.isEmpty)
            person.then(.touch())
            #expect(try items.read("any") == ["12345"])
            // The passcode still opens an item that it opened before.
            person.then(.type(ProtectedItems.passcode))
            #expect(try items.read("either") == ["12345"])
            // The former set does not come back.
            reader.enroll(1)
            #expect(items.readStatus("set") == .itemNotFound)
            let update = UpdateRequest(query: items.query("set"), secret: Data("other".utf8))
            #expect(items.status { () throws(KeychainFailure) in try keychain.update(update) } == .itemNotFound)
            try items.add("set", .biometryCurrentSet, secret: "new")
            person.then(.touch())
            #expect(try items.read("set") == ["new"])
            reader.enroll(3)
            try keychain.delete(DeleteRequest(query: items.query("set")))
        }
    }

    @Test("If the prints cannot be read any more, nothing opens and nothing is lost")
    func withoutPrints() throws {
        try withReader { items, _, reader, person in
            reader.become(.available(StubReader.set(nil, names: 5)))
            try items.add("set", .biometryCurrentSet)
            // The same fingers, whose prints are known from now on.
            reader.become(.available(StubReader.set(1, names: 5)))
            person.then(.touch())
            #expect(try items.read("set") == ["12345"])
            reader.become(.available(StubReader.set(nil, names: 5)))
            let failure = #expect(throws: KeychainFailure.self) { try items.read("set") }
            #expect(failure?.status == .authFailed && failure?.refusal == .biometryNotAvailable)
            reader.become(.available(StubReader.set(1, names: 6)))
            person.then(.touch(.matched(StubReader.set(nil, names: 6))))
            #expect(items.readStatus("set") == .authFailed)
            person.then(.touch())
            #expect(try items.read("set") == ["12345"])
            reader.become(.available(StubReader.set(2, names: 6)))
            #expect(items.readStatus("set") == .itemNotFound)
        }
    }

    @Test("Without prints, other names of fingers or of the reader are another set")
    func otherNames() throws {
        try withReader { items, _, reader, _ in
            reader.become(.available(StubReader.set(nil, names: 5)))
            try items.add("set", .biometryCurrentSet)
            reader.become(.available(StubReader.set(1, names: 6)))
            #expect(items.readStatus("set") == .itemNotFound)
        }
    }

    @Test("A set that changes during the scan releases nothing")
    func setChangesMeanwhile() throws {
        try withReader { items, _, reader, person in
            try items.add("safe", .biometryAny)
            person.then(.touch(.matched(StubReader.set(2))))
            #expect(items.readStatus() == .authFailed)
            reader.enroll(2)
            person.then(.touch())
            #expect(try items.read() == ["12345"])
        }
    }

    @Test("A finger that does not match, a canceled prompt, and a failure of the reader each have their own status")
    func refusals() throws {
        try withReader { items, _, reader, person in
            try items.add("safe", .biometryAny)
            person.then(.touch(Self.refused))
            let failure = #expect(throws: KeychainFailure.self) { try items.read() }
            #expect(failure?.status == .authFailed && failure?.refusal == .biometryNotRecognized)
            person.then(.cancel)
            #expect(items.readStatus() == .userCanceled)
            #expect(reader.canceledCount == 1)
            // Whatever is typed is no finger.
            person.then(.type(ProtectedItems.passcode))
            #expect(items.readStatus() == .userCanceled)
            person.then(.cancel)
            reader.beBusy(true)
            #expect(items.readStatus() == .authFailed)
            for availability in [BiometryAvailability.notEnrolled, .lockedOut, .notAvailable("unplugged")] {
                reader.become(availability)
                #expect(items.readStatus() == .authFailed)
                #expect(items.status { () throws(KeychainFailure) in try items.add("other", .biometryAny) } == .authFailed)
            }
        }
    }

    @Test("For user presence, a finger or the passcode does; without a reader it is the passcode at once")
    func userPresence() throws {
        try withReader { items, _, reader, person in
            let entered = reader.passcodeCount
            try items.add("safe", .userPresence)
            person.then(.touch())
            #expect(try items.read() == ["12345"])
            person.then(.type(ProtectedItems.passcode))
            #expect(try items.read() == ["12345"])
            #expect(reader.passcodeCount == entered + 1 && reader.canceledCount == 1)
            // The prompt stays after fingers that did not match.
            person.then(.touch(Self.refused), .type(ProtectedItems.passcode))
            #expect(try items.read() == ["12345"])
            // A finger also counts after a wrong passcode.
            person.then(.type("wrong"), .touch())
            #expect(try items.read() == ["12345"])
            #expect(person.questions.allSatisfy { $0.secret == .passcodeOrFingerprint })
            reader.beBusy(true)
            person.then(.type(ProtectedItems.passcode))
            #expect(try items.read() == ["12345"])
            reader.become(.lockedOut)
            person.then(.type(ProtectedItems.passcode))
            #expect(try items.read() == ["12345"])
            #expect(person.questions.last?.secret == .passcode)
        }
    }

    @Test("A new value leaves to a finger what it opens, also if the passcode was entered where no finger counts")
    func newValue() throws {
        try withReader { items, keychain, _, person in
            try items.add("safe", .userPresence)
            try items.add("other", .devicePasscode)
            let context = AuthenticationContext()
            person.then(.type(ProtectedItems.passcode))
            #expect(try items.read("other", Authentication(context: context)) == ["12345"])
            try keychain.update(
                UpdateRequest(query: items.query("safe"), secret: Data("new".utf8), authentication: Authentication(context: context)))
            person.then(.touch())
            #expect(try items.read() == ["new"])
            #expect(person.questions.map(\.secret) == [.passcode, .passcodeOrFingerprint])
        }
    }

    @Test("A new value leaves the set of fingers alone for which an item was stored")
    func newValueAfterAnotherSet() throws {
        try withReader { items, keychain, reader, person in
            try items.add("either", .any([.biometryCurrentSet, .devicePasscode]))
            reader.enroll(2)
            person.then(.type(ProtectedItems.passcode))
            try keychain.update(UpdateRequest(query: items.query("either"), secret: Data("new".utf8)))
            // A finger of the new set does not open it.
            person.then(.type(ProtectedItems.passcode))
            #expect(try items.read("either") == ["new"])
            #expect(person.questions.map(\.secret) == [.passcode, .passcode])
        }
    }

    @Test("After a new value, a finger opens an item of user presence that comes from another machine")
    func newValueOfOtherMachine() throws {
        try withReader { items, keychain, reader, person in
            try items.add("safe", .userPresence)
            reader.replaceSecret(by: 8)
            person.then(.type(ProtectedItems.passcode))
            try keychain.update(UpdateRequest(query: items.query("safe"), secret: Data("new".utf8)))
            person.then(.touch())
            #expect(try items.read() == ["new"])
            #expect(person.questions.map(\.secret) == [.passcodeOrFingerprint, .passcodeOrFingerprint])
        }
    }

    @Test("What replaces an item of a former set of fingers without reading it is refused, and does not get lost")
    func replacedAfterAnotherSet() throws {
        try withReader { items, keychain, reader, person in
            try items.add("set", .biometryCurrentSet)
            try items.add("either", .any([.biometryCurrentSet, .devicePasscode]))
            reader.enroll(2)
            func update(_ account: String) -> KeychainStatus? {
                let request = UpdateRequest(query: items.query(account), secret: Data("new".utf8), authentication: .forbidden)
                return items.status { () throws(KeychainFailure) in try keychain.update(request) }
            }
            #expect(update("set") == .itemNotFound)
            // A finger of the new set does not open it.
            #expect(update("either") == .success)
            person.then(.type(ProtectedItems.passcode))
            #expect(try items.read("either") == ["new"])
            #expect(person.questions.map(\.secret) == [.passcode])
        }
    }

    @Test("A finger opens what was stored while the reader could not be used")
    func storedWithoutReader() throws {
        try withReader { items, _, reader, person in
            try items.add("any", .biometryAny)
            reader.become(.notAvailable("another program is using the fingerprint reader"))
            try items.add("safe", .userPresence)
            reader.enroll(1)
            person.then(.touch())
            #expect(try items.read("safe") == ["12345"])
            #expect(person.questions.map(\.secret) == [.passcodeOrFingerprint])
        }
    }

    @Test("Before the first item there is a reader, without a state")
    func beforeTheFirstItem() throws {
        try withReader(withPasscode: false) { _, keychain, _, _ in
            let status = try keychain.biometryStatus()
            #expect(status == BiometryStatus(hasReader: true, isExact: true))
        }
    }

    @Test("An item that needs the passcode is not opened by a finger")
    func devicePasscode() throws {
        try withReader { items, _, reader, person in
            try items.add("safe", .devicePasscode)
            person.then(.type(ProtectedItems.passcode))
            #expect(try items.read() == ["12345"])
            #expect(person.questions.map(\.secret) == [.passcode] && reader.scanCount == 0)
            try items.add("both", .all([.biometryAny, .devicePasscode]))
            person.then(.touch(), .type(ProtectedItems.passcode))
            #expect(try items.read("both") == ["12345"])
        }
    }

    @Test("One match serves a context until the keychain is locked")
    func context() throws {
        try withReader { items, keychain, _, person in
            try items.add("safe", .biometryAny, .whenUnlocked)
            let context = AuthenticationContext()
            person.then(.touch())
            for _ in 0..<3 { #expect(try items.read("safe", Authentication(context: context)) == ["12345"]) }
            #expect(person.questions.count == 1)
            try keychain.lock(.whenUnlocked)
            #expect(items.readStatus("safe", Authentication(context: context)) == .interactionNotAllowed)
            try keychain.unlock(try Passcode(text: ProtectedItems.passcode), autoLock: .standard)
            person.then(.touch())
            #expect(try items.read("safe", Authentication(context: context)) == ["12345"])
            #expect(person.questions.count == 2)
        }
    }

    @Test("One match opens items of any finger and of the present set in a context")
    func bothKinds() throws {
        try withReader { items, _, _, person in
            try items.add("any", .biometryAny)
            try items.add("set", .biometryCurrentSet)
            let context = AuthenticationContext()
            person.then(.touch())
            for account in ["any", "set", "any"] {
                #expect(try items.read(account, Authentication(context: context)) == ["12345"])
            }
            #expect(person.questions.count == 1)
        }
    }

    @Test("After a match, an item with a password or a finger opens without the password")
    func fingerOrPassword() throws {
        try withReader { items, _, _, person in
            let context = AuthenticationContext()
            context.setApplicationPassword(try .given("spaceballs"))
            try items.add(
                "safe", .any([.biometryAny, .applicationPassword]), .whenUnlocked, authentication: Authentication(context: context))
            try items.add("other", .biometryAny)
            // Without a match the password is asked for, because that needs no reader.
            let touched = AuthenticationContext()
            person.then(.touch())
            for account in ["other", "safe"] {
                #expect(try items.read(account, Authentication(context: touched)) == ["12345"])
            }
            #expect(person.questions.map(\.secret) == [.fingerprint])
        }
    }

    @Test("A context whose match was before another set was enrolled opens nothing of the former set")
    func contextOfFormerSet() throws {
        try withReader { items, _, reader, person in
            try items.add("former", .biometryCurrentSet)
            let context = AuthenticationContext()
            person.then(.touch())
            #expect(try items.read("former", Authentication(context: context)) == ["12345"])
            reader.enroll(2)
            try items.add("present", .biometryCurrentSet)
            #expect(items.readStatus("former", Authentication(context: context)) == .itemNotFound)
            person.then(.touch())
            #expect(try items.read("present", Authentication(context: context)) == ["12345"])
        }
    }

    @Test("Locking everything takes the biometric keys away, until the passcode is entered")
    func lockEverything() throws {
        try withReader { items, keychain, reader, person in
            try items.add("safe", .biometryAny, .alwaysThisDeviceOnly)
            try keychain.lock(.whenUnlocked)
            person.then(.touch())
            #expect(try items.read() == ["12345"])
            try keychain.lock(.everything)
            person.then(.cancel)
            #expect(items.readStatus() == .interactionNotAllowed)
            #expect(person.questions.count == 1 && reader.scanCount == 1)
        }
    }

    @Test("Without a passcode there is no biometry")
    func withoutPasscode() throws {
        try withReader(withPasscode: false) { items, keychain, _, _ in
            let failure = #expect(throws: KeychainFailure.self) { try items.add("safe", .biometryAny, .whenUnlocked) }
            #expect(failure?.status == .authFailed && failure?.refusal == .passcodeNotSet)
            let other = #expect(throws: KeychainFailure.self) { try keychain.requireCanAuthenticate(.biometryAny, in: nil) }
            #expect(other?.refusal == .passcodeNotSet)
        }
    }

    @Test("The keys of another machine are left alone, and open nothing here")
    func otherMachine() throws {
        try withReader { items, _, reader, person in
            try items.add("safe", .biometryCurrentSet)
            reader.replaceSecret(by: 8)
            person.then(.touch())
            #expect(items.readStatus() == .authFailed)
            try items.add("other", .biometryCurrentSet)
            reader.replaceSecret(by: 7)
            person.then(.touch())
            #expect(try items.read() == ["12345"])
        }
    }

    @Test("An item of another machine that the passcode opens too asks for the passcode after a finger")
    func userPresenceOfOtherMachine() throws {
        try withReader { items, _, reader, person in
            try items.add("safe", .userPresence)
            reader.replaceSecret(by: 8)
            person.then(.touch(), .type(ProtectedItems.passcode))
            #expect(try items.read() == ["12345"])
            #expect(person.questions.map(\.secret) == [.passcodeOrFingerprint, .passcode])
        }
    }

    @Test("No program sees the biometric keys, and changing the passcode with its keys keeps them")
    func hiddenItem() throws {
        try withReader { items, keychain, _, person in
            try items.add("safe", .biometryAny)
            let group = Entitlements.biometryGroup
            let all = ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.accessGroup: .string(group)]))
            let named = keychain.with(entitlements: Entitlements(applicationIdentifier: "app", keychainAccessGroups: [group]))
            #expect(throws: KeychainFailure(.missingEntitlement, "")) { try named.copyMatching(MatchRequest(query: all)) }
            #expect(throws: KeychainFailure(.missingEntitlement, "")) { try keychain.copyMatching(MatchRequest(query: all)) }
            try keychain.changePasscode(
                from: try Passcode(text: ProtectedItems.passcode), to: try Passcode(text: "other"), rotatingKeys: true,
                autoLock: .standard)
            person.then(.touch())
            #expect(try items.read() == ["12345"])
        }
    }

    @Test("A policy is evaluated with a finger, and says why it cannot be")
    func policies() throws {
        try withReader { _, keychain, reader, person in
            let context = AuthenticationContext()
            person.then(.touch())
            try keychain.requireCanAuthenticate(.biometryAny, in: context)
            try keychain.authenticate(.biometryAny, of: nil, Authentication(context: context))
            try keychain.authenticate(.biometryAny, of: nil, Authentication(context: context))
            try keychain.authenticate(.userPresence, of: nil, Authentication(context: context))
            #expect(person.questions.map(\.secret) == [.fingerprint])
            let status = try keychain.biometryStatus()
            #expect(status.hasReader && status.isExact && status.domainState?.count == 32)
            // Programs do not get the digest itself.
            #expect(status.domainState != StubReader.set(1).digest)
            #expect(try keychain.biometryStatus() == status)
            reader.become(.notEnrolled)
            person.then(.cancel)
            let failure = #expect(throws: KeychainFailure.self) { try keychain.requireCanAuthenticate(.biometryAny, in: nil) }
            #expect(failure?.refusal == .biometryNotEnrolled)
            try keychain.requireCanAuthenticate(.userPresence, in: nil)
        }
    }
}
