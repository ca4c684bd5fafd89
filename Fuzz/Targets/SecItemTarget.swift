// SPDX-License-Identifier: Apache-2.0
internal import Foundation

@testable internal import KeychainCore
@testable internal import SecurityAPI

/// Dictionaries of SecItem, from keys and values of any kind to requests, and back.
struct SecItemTarget: FuzzTarget {
    static let name = "secitem"

    static func seeds() -> [[UInt8]] {
        func entry(_ key: String, _ value: [UInt8]) -> [UInt8] { [UInt8(SecItemInput.keys.firstIndex(of: key) ?? 255)] + value }
        func text(_ text: String) -> [UInt8] { [SecItemInput.Kind.string.rawValue, 1] + .counted(Array(text.utf8)) }
        let yes: [UInt8] = [SecItemInput.Kind.boolean.rawValue, 1]
        let item = entry(kSecClass, text("genp")) + entry(kSecAttrAccount, text("Skroob")) + entry(kSecAttrService, text("druidia"))
        let secret = entry(kSecValueData, [SecItemInput.Kind.data.rawValue, 1] + .counted(Array("12345".utf8)))
        let server =
            entry(kSecClass, text("inet")) + entry(kSecAttrServer, text("a.example")) + entry(kSecAttrPort, [3, 0, 0, 0, 0, 0, 0, 1, 187])
        let options = entry(kSecAttrAccessible, text("ak")) + entry(kSecAttrSynchronizable, text("syna"))
        let search = entry(kSecReturnData, yes) + entry(kSecReturnAttributes, yes) + entry(kSecMatchLimit, text("m_LimitAll"))
        let constrained = entry(kSecAttrAccessControl, [SecItemInput.Kind.accessControl.rawValue, 0, 1])
        return (0..<4).flatMap { verb -> [[UInt8]] in
            [item, item + secret, server + options, item + search, item + constrained + secret].map { [UInt8(verb), 3] + $0 }
        } + [[3, 4] + item + entry(kSecAttrLabel, text("new")) + secret]
    }

    func run(_ input: [UInt8]) throws {
        var reader = InputReader(input)
        let verb = reader.choice(below: 4)
        // An update has two dictionaries: the first so many entries are the query's.
        let queryCount = verb == 3 ? reader.choice(below: 16) : .max
        if verb != 3 { _ = reader.byte() }
        let query = SecItemInput.dictionary(&reader, atMost: queryCount)
        guard let parsed = try Self.parse(query) else { return }
        Self.checkRendering(parsed)
        switch verb {
        case 0: try checkAdding(parsed)
        case 1: try checkSearch(parsed)
        case 2: _ = attempt(expecting: Self.isAnswer) { () throws(KeychainFailure) in try DeleteRequest(parsed) }
        default:
            let changes = SecItemInput.dictionary(&reader, atMost: .max)
            try checkUpdate(parsed, changes)
        }
    }

    /// Parses, and checks that neither the order of the dictionary nor its being Foundation's makes a difference.
    private static func parse(_ dictionary: [String: Any]) throws -> ParsedItemDictionary? {
        let first = Result { () throws(KeychainFailure) in try ParsedItemDictionary(dictionary) }
        var other: [String: Any] = [:]
        other.reserveCapacity(1_000)
        for (key, value) in dictionary { other[key] = value }
        let second = Result { () throws(KeychainFailure) in try ParsedItemDictionary(other) }
        let third = Result { () throws(KeychainFailure) in try ParsedItemDictionary(try (dictionary as NSDictionary).stringKeyed()) }
        for again in [second, third] {
            switch (first, again) {
            case (.success(let one), .success(let two)):
                expect(SecItemFields(one) == SecItemFields(two), "one dictionary is read in two ways")
            case (.failure(let one), .failure(let two)):
                expect(one.status == two.status && one.reason == two.reason, "two failures: \(one), \(two)")
            default: expect(false, "one dictionary is accepted and refused: \(first), \(again)")
            }
        }
        switch first {
        case .success(let parsed): return parsed
        case .failure(let failure):
            expect(isAnswer(failure), "fails with \(failure)")
            return nil
        }
    }

    private static func isAnswer(_ failure: KeychainFailure) -> Bool {
        switch failure.status {
        case .parameter, .noSuchAttribute, .noSuchClass, .unimplemented, .missingEntitlement, .itemNotFound, .authFailed: true
        default: false
        }
    }

    /// Accepted attributes survive conversion to a dictionary.
    private static func checkRendering(_ parsed: ParsedItemDictionary) {
        let again = attempt { () throws(KeychainFailure) in
            try ParsedItemDictionary(SecItemFields(parsed).dictionary)
        }
        guard let again else { return }
        expect(SecItemFields(again) == SecItemFields(parsed), "a dictionary changes when it is written and read again")
    }

    /// What an item is returned as can be looked for, and finds the same attributes.
    private func checkAdding(_ parsed: ParsedItemDictionary) throws {
        let request = attempt(expecting: Self.isAnswer) { () throws(KeychainFailure) in try AddRequest(parsed) }
        guard let request else { return }
        let accessControl = request.accessControl ?? AccessControl(.whenUnlocked)
        var attributes = request.attributes
        attributes[.accessible] = .string(accessControl.accessibility.rawValue)
        attributes[.tombstone] = .number(0)
        let item = KeychainItem(
            reference: PersistentReference(itemClass: request.itemClass, id: ItemID(high: 1, low: 2)), attributes: attributes,
            accessControl: accessControl, secret: request.secret)
        for parts in [[.attributes, .data], [.attributes, .reference, .persistentReference]] as [ResultParts] {
            let renderer = ItemRenderer(parts: parts, verb: .copyMatching)
            guard var dictionary = renderer.render(item) as? [String: Any] else { return expect(false, "an item is returned as nothing") }
            dictionary[kSecClass] = request.itemClass.rawValue
            if !accessControl.isUnconstrained { dictionary[kSecAttrAccessible] = nil }
            let again = attempt { () throws(KeychainFailure) in
                try ParsedItemDictionary(dictionary)
            }
            for entry in request.attributes.entries where entry.attribute != .synchronizable {
                expect(again?.attributes[entry.attribute] == entry.value, "\(entry.attribute) is returned as something else")
            }
            if parts.contains(.data) { expect(again?.secret == request.secret, "the secret is returned as something else") }
        }
    }

    private func checkSearch(_ parsed: ParsedItemDictionary) throws {
        let request = attempt(expecting: Self.isAnswer) { () throws(KeychainFailure) in try MatchRequest(parsed) }
        guard let request else { return }
        expect(request.limit.map { $0 > 0 } != false, "a search for nothing")
        expect(request.query.attributes[.synchronizable] == nil && request.query.attributes[.tombstone] == nil, "a filter is there twice")
    }

    private func checkUpdate(_ query: ParsedItemDictionary, _ changes: [String: Any]) throws {
        let parsed = attempt(expecting: Self.isAnswer) { () throws(KeychainFailure) in
            try ParsedUpdateDictionary(changes, of: query.itemClass)
        }
        guard let parsed else { return }
        let request = attempt(expecting: Self.isAnswer) { () throws(KeychainFailure) in try UpdateRequest(query, changes: parsed) }
        guard let request else { return }
        for attribute in [Attribute.accessible, .modificationDate, .sha1, .tombstone, .multiUser] {
            expect(request.changes[attribute] == nil, "an update changes \(attribute)")
        }
    }
}
