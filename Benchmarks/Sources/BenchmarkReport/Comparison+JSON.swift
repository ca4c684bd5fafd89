// SPDX-License-Identifier: Apache-2.0
package import Foundation

extension Comparison {
    struct UnknownFormat: Error {
        let format: Int
    }

    package func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return try encoder.encode(self) + Data("\n".utf8)
    }

    package init(json: Data) throws {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        self = try decoder.decode(Comparison.self, from: json)
        guard format == Self.currentFormat else { throw UnknownFormat(format: format) }
    }
}
