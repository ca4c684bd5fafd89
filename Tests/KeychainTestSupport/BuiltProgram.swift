// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Finds programs that this package has built: they lie beside the tests.
package enum BuiltProgram {
    package struct Missing: Error {
        let name: String
        let places: [String]
    }

    /// The path of the program.
    ///
    /// Throws, saying where it was looked for, when it was not built.
    package static func path(of name: String) throws -> String {
        let places = [try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"), CommandLine.arguments.first]
            .compactMap(\.self)
            .map { URL(filePath: $0).deletingLastPathComponent().path }
        guard let place = places.first(where: { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }) else {
            throw Missing(name: name, places: places)
        }
        return "\(place)/\(name)"
    }
}
