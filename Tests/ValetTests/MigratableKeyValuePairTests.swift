// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing
import Valet

@Suite("Pairs of key and value to migrate")
struct MigratableKeyValuePairTests {
    @Test("Text becomes its UTF-8 bytes")
    func text() {
        let pair = MigratableKeyValuePair(key: "Skroob", value: "12345 ✓")
        #expect(pair.key == "Skroob")
        #expect(pair.value == Data("12345 ✓".utf8))
        #expect(pair == MigratableKeyValuePair(key: "Skroob", value: Data("12345 ✓".utf8)))
    }

    @Test("Pairs are equal if key and value are")
    func equality() {
        let pair = MigratableKeyValuePair(key: "Skroob", value: "12345")
        #expect(pair != MigratableKeyValuePair(key: "Helmet", value: "12345"))
        #expect(pair != MigratableKeyValuePair(key: "Skroob", value: "54321"))
        #expect(Set([pair, pair]).count == 1)
    }
}
