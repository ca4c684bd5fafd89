// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

// Where items are: their places, and the accounts in each. A survey has one encoding: places and groups are in the order of their bytes.

extension MessageWriter {
    mutating func write(_ survey: ItemSurvey) {
        let accounts = survey.accounts.map { (place: $0.key.encoded, accounts: $0.value) }
        write(UInt32(accounts.count))
        for (place, accounts) in accounts.sorted(by: { $0.place.lexicographicallyPrecedes($1.place) }) {
            writeEncoded(place)
            write(UInt32(accounts.count))
            for account in accounts { write(account) }
        }
        let counts = survey.internetPasswordCounts.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        write(UInt32(counts.count))
        for (group, count) in counts {
            write(group)
            write(UInt64(max(count, 0)))
        }
        write(UInt64(max(survey.unreadableCount, 0)))
    }

    mutating func write(_ place: ItemPlace) { writeEncoded(place.encoded) }
}

extension ItemPlace {
    fileprivate var encoded: [UInt8] {
        var writer = MessageWriter()
        writer.write(accessGroup)
        writer.write(service)
        writer.write(accessibility.code)
        writer.write(isSynchronizable)
        return writer.bytes
    }
}

extension MessageReader {
    mutating func readSurvey() throws(MalformedMessage) -> ItemSurvey {
        let accounts = try readList { reader throws(MalformedMessage) in
            (place: try reader.readPlace(), accounts: try reader.readList { reader throws(MalformedMessage) in try reader.readText() })
        }
        let counts = try readList { reader throws(MalformedMessage) in
            (group: Array(try reader.readText().utf8), count: try reader.readCount())
        }
        // So none comes twice.
        guard Self.isInOrder(accounts.map(\.place.encoded)), Self.isInOrder(counts.map(\.group)) else {
            throw MalformedMessage()
        }
        var survey = ItemSurvey()
        for (place, accounts) in accounts { survey.accounts[place] = accounts }
        for (group, count) in counts { survey.internetPasswordCounts[group] = count }
        survey.unreadableCount = try readCount()
        return survey
    }

    mutating func readPlace() throws(MalformedMessage) -> ItemPlace {
        ItemPlace(
            accessGroup: try readText(), service: try readText(), accessibility: try readAccessibility(), isSynchronizable: try readFlag())
    }

    private mutating func readCount() throws(MalformedMessage) -> Int { try required(Int(exactly: try readUInt64())) }

    private static func isInOrder(_ encodings: [[UInt8]]) -> Bool {
        zip(encodings, encodings.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) }
    }
}
