// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@Suite("Attributes of an item")
struct ItemAttributesTests {
    @Test("They stand in the order of their numbers, however they were set")
    func order() {
        var attributes = ItemAttributes()
        for attribute in Attribute.allCases.shuffled() { attributes[attribute] = .number(Int64(attribute.rawValue)) }
        #expect(attributes.entries.map(\.attribute.rawValue) == Attribute.allCases.map(\.rawValue).sorted())
        for attribute in Attribute.allCases { #expect(attributes[attribute] == .number(Int64(attribute.rawValue))) }
    }

    @Test("Setting replaces, and nil removes")
    func replacing() {
        var attributes = ItemAttributes([.account: .string("a"), .service: .string("b")])
        attributes[.account] = .string("c")
        attributes[.service] = nil
        attributes[.label] = nil
        #expect(attributes == ItemAttributes([.account: .string("c")]))
        attributes[.account] = nil
        #expect(attributes.isEmpty)
    }

    @Test("Changes are laid over what is there")
    func updating() {
        let old = ItemAttributes([.account: .string("a"), .service: .string("b")])
        let new = old.updated(with: ItemAttributes([.account: .string("c"), .label: .string("d")]))
        #expect(new == ItemAttributes([.account: .string("c"), .service: .string("b"), .label: .string("d")]))
    }

    @Test("Typed readers answer only for their own type")
    func typedReaders() {
        let attributes = ItemAttributes([
            .account: .string("a"), .generic: .data(Data()), .synchronizable: .number(2), .creationDate: .date(3),
        ])
        #expect(attributes.text(.account) == "a" && attributes.text(.generic) == nil && attributes.text(.label) == nil)
        #expect(attributes.flag(.synchronizable) == true && attributes.flag(.account) == nil)
        #expect(attributes.seconds(.creationDate) == 3 && attributes.seconds(.account) == nil)
    }

    @Test("Each attribute has one four-letter name, and is found by it", arguments: Attribute.allCases)
    func names(_ attribute: Attribute) {
        #expect(attribute.name.utf8.count == 4)
        #expect(Attribute(name: attribute.name) == attribute)
        #expect(Attribute(name: attribute.name + " ") == nil)
    }

    @Test("Both classes have the attributes of their primary key", arguments: [ItemClass.genericPassword, .internetPassword])
    func primaryKeys(_ itemClass: ItemClass) {
        let attributes = PrimaryKey.attributes(of: itemClass)
        #expect(attributes.allSatisfy { $0.belongs(to: itemClass) })
        #expect(attributes.map(\.rawValue) == attributes.map(\.rawValue).sorted())
        let leading = PrimaryKey.leading(of: itemClass)
        #expect(attributes.contains(leading.service) && attributes.contains(leading.account))
    }

    @Test("A password has no attribute of the other class")
    func foreignAttributes() {
        #expect(!Attribute.server.belongs(to: .genericPassword) && Attribute.server.belongs(to: .internetPassword))
        #expect(!Attribute.service.belongs(to: .internetPassword) && Attribute.service.belongs(to: .genericPassword))
        #expect(!Attribute.account.belongs(to: .certificate))
    }
}
