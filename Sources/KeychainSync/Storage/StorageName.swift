// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)

/// The names that a storage accepts: those of objects and of their folders, with or without the directory of a circle.
package enum StorageName {
    /// The files of a folder that are objects.
    enum Files {
        case none
        /// Their names are 64 digits.
        case hashes
        /// Their names are a number of 16 digits, "-", and 32 digits.
        case batches

        /// The files of a folder for which `isFolder` holds.
        init(in folder: String) {
            var parts = folder.split(separator: "/", omittingEmptySubsequences: false)
            if parts.first.map(isDigits) == true { parts.removeFirst() }
            switch (parts.first, parts.count) {
            case ("m", 1), ("c", 1), ("p", 1), ("j", 2): self = .hashes
            case ("b", 3): self = .batches
            default: self = .none
            }
        }

        /// Whether a file of this name is an object.
        func contains(_ file: some StringProtocol) -> Bool {
            switch self {
            case .none: return false
            case .hashes: return file.utf8.count == 64 && file.utf8.allSatisfy(isDigit)
            case .batches:
                guard file.utf8.count == 49 else { return false }
                var isZero = true
                for (index, character) in file.utf8.enumerated() {
                    guard index == 16 ? character == UInt8(ascii: "-") : isDigit(character) else { return false }
                    if index < 16, character != UInt8(ascii: "0") { isZero = false }
                }
                // Batches are counted from 1.
                return !isZero
            }
        }
    }

    /// Whether `name` is the name of an object, as `ObjectName` parses it.
    package static func isObject(_ name: String) -> Bool {
        guard let slash = name.utf8.lastIndex(of: UInt8(ascii: "/")) else { return false }
        let folder = String(name[..<slash])
        return isFolder(folder) && Files(in: folder).contains(name[name.utf8.index(after: slash)...])
    }

    /// Whether `name` is a directory that may contain objects, or the empty string.
    package static func isFolder(_ name: String) -> Bool {
        guard !name.isEmpty else { return true }
        var parts = name.split(separator: "/", omittingEmptySubsequences: false)
        if isDigits(parts[0]) { parts.removeFirst() }
        guard let first = parts.first else { return true }
        let identifierCount: Int
        switch first {
        case "m", "c", "p": identifierCount = 0
        case "j": identifierCount = 1
        case "b": identifierCount = 2
        default: return false
        }
        return parts.count - 1 <= identifierCount && parts.dropFirst().allSatisfy(isDigits)
    }

    /// Whether a file or directory of this name, wherever it is, may be an object or contain one.
    static func mayBePart(_ name: String) -> Bool {
        name.utf8.count <= 64
            && name.utf8.allSatisfy { $0 == UInt8(ascii: "-") || isDigit($0) || "mpj".utf8.contains($0) }
    }

    /// Throws `.failed` unless `name` is the name of an object.
    package static func requireObject(_ name: String) throws(SyncStorageError) {
        guard isObject(name) else { throw SyncStorageError(.failed, "this is not the name of an object: \(printable(name))") }
    }

    /// Throws `.failed` unless `folder` may contain objects.
    package static func requireFolder(_ folder: String) throws(SyncStorageError) {
        guard isFolder(folder) else { throw SyncStorageError(.failed, "this is not a folder of objects: \(printable(folder))") }
    }

    private static func printable(_ name: String) -> String {
        String(name.unicodeScalars.prefix(80).map { $0.escaped(asASCII: true) }.joined())
    }

    /// Whether the text is an identifier: of a circle, a device, a log, or an invitation.
    fileprivate static func isDigits(_ text: Substring) -> Bool { text.utf8.count == 32 && text.utf8.allSatisfy(isDigit) }

    fileprivate static func isDigit(_ character: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(character)
    }
}
#endif
