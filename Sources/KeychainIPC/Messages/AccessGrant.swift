// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The permission of a program to read the items of an access group that is not its own, until it is revoked.
package struct AccessGrant: Hashable, Sendable {
    /// The access group of its own that keychaind gives to the program, such as `program:/usr/bin/evolution`.
    package let program: String
    package let group: String
    /// Seconds since 2001-01-01 00:00:00 UTC.
    package let grantedAtSeconds: UInt64

    /// The names of both together: a prompt shows them whole.
    package static let largestNamesByteCount = 180

    /// Throws `.parameter` if a prompt cannot show the names as they are, and for groups that no program can be given.
    package init(program: String, group: String, grantedAtSeconds: UInt64) throws(KeychainFailure) {
        try Self.requireGrantable(group)
        try Self.requireShowable(program, "name of the program")
        guard program.utf8.count + group.utf8.count <= Self.largestNamesByteCount else {
            throw KeychainFailure(
                .parameter,
                "the names of the program and the group have more than \(Self.largestNamesByteCount) bytes, which a prompt does not show whole"
            )
        }
        self.program = program
        self.group = group
        self.grantedAtSeconds = grantedAtSeconds
    }

    /// Throws `.parameter` unless a person can let a program read the items of a group.
    package static func requireGrantable(_ group: String) throws(KeychainFailure) {
        try requireShowable(group, "access group")
        guard !Entitlements.isInternal(group), group != Entitlements.tokenGroup else {
            throw KeychainFailure(.parameter, "no program can be given the access group '\(group)'")
        }
    }

    private static func requireShowable(_ text: String, _ noun: String) throws(KeychainFailure) {
        guard !text.isEmpty, text.utf8.count <= largestNamesByteCount,
            SanitizedText.quotation(text, byteLimit: largestNamesByteCount).hasSameBytes(as: text),
            !text.unicodeScalars.contains(where: { "'‘’".unicodeScalars.contains($0) })
        else {
            throw KeychainFailure(
                .parameter,
                "the \(noun) is empty, is longer than \(largestNamesByteCount) bytes, or has characters that a prompt does not show as they are"
            )
        }
    }
}

/// The grants of a user, as the file in which keychaind keeps them.
///
///     keychaind grants 1
///     SECONDS <tab> PROGRAM <tab> GROUP     for each grant
///     end
package struct AccessGrants: Hashable, Sendable {
    package private(set) var all: [AccessGrant] = []

    package static let largestCount = 256
    /// More than the largest file has.
    package static let largestFileByteCount = 1 << 17
    private static let firstLine = "keychaind grants 1"
    private static let lastLine = "end"

    package init() {}

    /// Parses the file; nil unless it is whole.
    package init?(_ bytes: [UInt8]) {
        guard bytes.last == UInt8(ascii: "\n") else { return nil }
        let lines = bytes.dropLast().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard lines.count >= 2, lines.first?.elementsEqual(Self.firstLine.utf8) == true,
            lines.last?.elementsEqual(Self.lastLine.utf8) == true
        else { return nil }
        for line in lines.dropFirst().dropLast() {
            let fields = line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false).map {
                String(validating: $0, as: UTF8.self)
            }
            guard fields.count == 3, let seconds = fields[0].flatMap({ UInt64($0) }), let program = fields[1], let group = fields[2],
                let grant = try? AccessGrant(program: program, group: group, grantedAtSeconds: seconds), (try? add(grant)) != nil
            else { return nil }
        }
    }

    package var encoded: [UInt8] {
        let lines = all.map { "\($0.grantedAtSeconds)\t\($0.program)\t\($0.group)" }
        return Array(([Self.firstLine] + lines + [Self.lastLine]).joined(separator: "\n").utf8) + [UInt8(ascii: "\n")]
    }

    /// The groups that a program may read.
    package func groups(ofProgram program: String) -> [String] { all.filter { $0.program.hasSameBytes(as: program) }.map(\.group) }

    /// Throws `.duplicateItem` if there is the same one, and `.allocate` if there are too many.
    package mutating func add(_ grant: AccessGrant) throws(KeychainFailure) {
        guard index(ofProgram: grant.program, group: grant.group) == nil else {
            throw KeychainFailure(.duplicateItem, "'\(grant.program)' may read the access group '\(grant.group)' already")
        }
        guard all.count < Self.largestCount else {
            throw KeychainFailure(
                .allocate,
                "there are \(Self.largestCount) grants, the most that keychaind keeps for a user: revoke those that are not needed")
        }
        all.append(grant)
    }

    /// Throws `.itemNotFound` if there is none.
    package mutating func remove(program: String, group: String) throws(KeychainFailure) {
        guard let index = index(ofProgram: program, group: group) else {
            throw KeychainFailure(.itemNotFound, "no grant lets '\(program)' read the access group '\(group)'")
        }
        all.remove(at: index)
    }

    private func index(ofProgram program: String, group: String) -> Int? {
        all.firstIndex { $0.program.hasSameBytes(as: program) && $0.group.hasSameBytes(as: group) }
    }
}

extension MessageWriter {
    mutating func write(_ grants: [AccessGrant]) {
        write(UInt32(grants.count))
        for grant in grants {
            write(grant.program)
            write(grant.group)
            write(grant.grantedAtSeconds)
        }
    }
}

extension MessageReader {
    mutating func readGrants() throws(MalformedMessage) -> [AccessGrant] {
        try readList { reader throws(MalformedMessage) in
            let (program, group, seconds) = (try reader.readText(), try reader.readText(), try reader.readUInt64())
            do throws(KeychainFailure) {
                return try AccessGrant(program: program, group: group, grantedAtSeconds: seconds)
            } catch {
                throw MalformedMessage()
            }
        }
    }
}
