// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@Suite("Equality of attribute values in a search")
struct AttributeValueTests {
    @Test(
        "Values with the same bytes match, whatever their type",
        arguments: [
            (AttributeValue.string("a"), AttributeValue.data(Data("a".utf8))),
            (.string(""), .data(Data())),
            (.string("ż"), .data(Data([0xC5, 0xBC]))),
            (.number(1), .data(Data([1, 0, 0, 0]))),
            (.number(-1), .data(Data([255, 255, 255, 255]))),
            (.number(Int64(Int32.max) + 1), .data(Data([0, 0, 0, 128, 0, 0, 0, 0]))),
            (.date(0), .data(Data(count: 8))),
        ]
    )
    func sameBytes(_ left: AttributeValue, _ right: AttributeValue) {
        #expect(left.matches(right) && right.matches(left) && left.matches(left))
        #expect(left != right, "they are still two values")
    }

    @Test(
        "Values with other bytes do not match",
        arguments: [
            (AttributeValue.string("a"), AttributeValue.string("A")),
            (.string("a"), .string("a\0")),
            (.string(""), .string("\0")),
            (.string("1"), .number(1)),
            (.number(1), .data(Data([1]))),
            (.number(1), .data(Data([1, 0, 0, 0, 0, 0, 0, 0]))),
            (.number(0), .string("")),
            (.date(1), .date(1.5)),
        ]
    )
    func otherBytes(_ left: AttributeValue, _ right: AttributeValue) {
        #expect(!left.matches(right) && !right.matches(left))
    }

    @Test("Texts that only look alike do not match")
    func normalisation() {
        // Swift takes the two texts for equal. Their digests differ, so nothing here may.
        let composed = AttributeValue.string("\u{E9}")
        let decomposed = AttributeValue.string("e\u{301}")
        #expect(!composed.matches(decomposed))
        #expect(composed != decomposed && Set([composed, decomposed]).count == 2)
        #expect(ItemAttributes([.account: composed]) != ItemAttributes([.account: decomposed]))
    }

    @Test("Equal values have equal hashes, as keys of a dictionary")
    func hashing() {
        for value in [AttributeValue.string("a"), .data(Data([1])), .number(-1), .date(.nan), .date(-0.0)] {
            #expect(value == value && Set([value, value]).count == 1)
        }
        #expect(AttributeValue.date(0) != .date(-0.0))
    }
}
