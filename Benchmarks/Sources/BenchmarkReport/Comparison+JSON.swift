// SPDX-License-Identifier: Apache-2.0
package import Foundation

extension Comparison {
    struct UnknownFormat: Error {
        let format: Int
    }

    package func json() throws -> Data { try ReportFile.encoder.encode(self) + Data("\n".utf8) }

    package init(json: Data) throws {
        self = try ReportFile.decoder.decode(Comparison.self, from: json)
        guard format == Self.currentFormat else { throw UnknownFormat(format: format) }
    }
}
