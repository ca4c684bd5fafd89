// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import ValetCLI

@Suite("NAME=KEY")
struct SecretAssignmentTests {
    @Test(
        "The name is a shell's, the key is everything after the first =",
        arguments: [("A=b", "A", "b"), ("_a1=b=c", "_a1", "b=c"), ("TOKEN= ", "TOKEN", " "), ("A=é", "A", "é")])
    func parsed(_ text: String, _ name: String, _ key: String) throws {
        let assignment = try #require(SecretAssignment(argument: text))
        #expect(assignment.name == name)
        #expect(assignment.key == key)
    }

    @Test("Anything else is refused", arguments: ["", "A", "A=", "=b", "1A=b", "A-B=c", "É=b", "A B=c", " A=b"])
    func refused(_ text: String) {
        #expect(SecretAssignment(argument: text) == nil)
    }
}
