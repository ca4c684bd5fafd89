// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("The sealed state of a store")
struct StoreStateTests {
    struct Vectors: Decodable {
        struct Case: Decodable, Sendable, CustomTestStringConvertible {
            let name: String
            let rowTags: [Hexadecimal]
            let removedRowTags: [Hexadecimal]
            let changeCount: UInt64
            let id: Hexadecimal
            let keybag: Hexadecimal
            let sealed: Hexadecimal

            var testDescription: String { name }

            /// The state that the case describes, computed row by row.
            func state(_ cipher: StoreStateCipher) throws -> StoreState {
                var state = StoreState(
                    changeCount: changeCount, id: try id.identifier(), rowCount: 0, rowSum: UInt256(),
                    keybagDigest: cipher.digest(ofKeybag: keybag.bytes))
                for tag in rowTags { state.insertRow(cipher.element(ofRowTag: tag.bytes)) }
                for tag in removedRowTags { state.removeRow(cipher.element(ofRowTag: tag.bytes)) }
                return state
            }
        }

        let storeID: Hexadecimal
        let rowTagKey: Hexadecimal
        let cases: [Case]
    }

    private static let vectors = Result { try TestVectors.load("state-v1.json", as: Vectors.self) }

    private static func cipher(storeID: StoreID? = nil, keyMask: UInt8 = 0) throws -> StoreStateCipher {
        let vectors = try vectors.get()
        var key = vectors.rowTagKey.bytes
        key[0] ^= keyMask
        // The bytes are copied within the closure.
        let secret = try unsafe SecretBytes(byteCount: key.count) { unsafe $0.copyBytes(from: key) }
        return try StoreStateCipher(rowTagKey: secret, storeID: storeID ?? vectors.storeID.identifier())
    }

    @Test("Another implementation seals the same states", arguments: try vectors.get().cases)
    func vector(_ vector: Vectors.Case) throws {
        let cipher = try Self.cipher()
        let state = try vector.state(cipher)
        #expect(cipher.seal(state) == vector.sealed.bytes)
        #expect(cipher.open(vector.sealed.bytes) == state)
    }

    @Test("An altered, shortened, or extended state does not open, and neither does that of another store")
    func altered() throws {
        let vector = try #require(try Self.vectors.get().cases.last)
        let sealed = vector.sealed.bytes
        let cipher = try Self.cipher()
        for index in sealed.indices {
            var altered = sealed
            altered[index] ^= 1
            #expect(cipher.open(altered) == nil)
        }
        #expect(cipher.open(Array(sealed.dropLast())) == nil && cipher.open(sealed + [0]) == nil && cipher.open([]) == nil)
        #expect(try Self.cipher(storeID: .random()).open(sealed) == nil)
        #expect(try Self.cipher(keyMask: 1).open(sealed) == nil)
    }

    @Test("The sum does not depend on the order, and removing a row undoes its insertion")
    func sum() throws {
        let cipher = try Self.cipher()
        var elements = (0..<200).map { cipher.element(ofRowTag: [UInt8($0)]) }
        let empty = StoreState.initial(keybagDigest: UInt256())
        var state = empty
        for element in elements { state.insertRow(element) }
        elements.shuffle()
        for element in elements { state.removeRow(element) }
        #expect(state == empty)
    }

    @Test("Two states with the same rows do not show it, and a difference of sums does not show a row")
    func hidden() throws {
        let cipher = try Self.cipher()
        let first = StoreState.initial(keybagDigest: UInt256())
        var second = first
        second.id = .random()
        let sums = [first, second].map { Array(cipher.seal($0)[65..<97]) }
        #expect(sums[0] != sums[1])
    }
}
