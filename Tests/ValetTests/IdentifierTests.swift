// SPDX-License-Identifier: Apache-2.0
import Testing
import Valet

@Suite("Identifiers")
struct IdentifierTests {
    @Test("An identifier has text", arguments: [nil, ""])
    func emptyIdentifier(text: String?) {
        #expect(Identifier(nonEmpty: text) == nil)
    }

    @Test("An identifier describes itself by its text")
    func description() throws {
        #expect(try identifier("Druidia").description == "Druidia")
    }

    @Test("A shared group is described by prefix, dot, group")
    func sharedGroupDescription() throws {
        #expect(try sharedGroup().description == "AppID12345.Druidia")
        #expect(SharedGroupIdentifier(groupPrefix: "group", nonEmptyGroup: "Druidia")?.description == "group.Druidia")
    }

    @Test("A shared group has a prefix and a group", arguments: [("", "Druidia"), ("AppID12345", ""), ("AppID12345", nil)])
    func emptySharedGroup(prefix: String, group: String?) {
        #expect(SharedGroupIdentifier(appIDPrefix: prefix, nonEmptyGroup: group) == nil)
    }

    @Test("An application group has a group", arguments: [nil, ""])
    func emptyApplicationGroup(group: String?) {
        #expect(SharedGroupIdentifier(groupPrefix: "group", nonEmptyGroup: group) == nil)
    }

    #if !os(macOS)
    @Test("Off macOS the prefix of an application group is the word group", arguments: ["", "Group", "AppID12345", "group."])
    func wrongGroupPrefix(prefix: String) {
        #expect(SharedGroupIdentifier(groupPrefix: prefix, nonEmptyGroup: "Druidia") == nil)
    }
    #endif
}
