// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import KeychainTesting
import KeychainTestingTraits
import Testing
import Valet
@testable import luggage

@Suite(.inMemoryKeychain) struct LuggageTests {
    @Test func remembersTheCombination() throws {
        let luggage = Luggage()
        #expect(try luggage.combination() == nil)
        try luggage.setCombination("12345")
        #expect(try luggage.combination() == "12345")
    }

    @Test func aLockedKeychainIsNotAnEmptyOne() throws {
        try Luggage().setCombination("12345")
        try InMemoryKeychain.current?.lock()
        let failure = #expect(throws: ValetFailure.self) { try Luggage().combination() }
        #expect(failure?.reason == .locked)
    }
}
#endif
