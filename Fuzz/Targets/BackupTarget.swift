// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import Foundation

@testable internal import Keybag
@testable internal import KeychainCore

/// Backups below their seal, and what of them is read before the password is known.
final class BackupTarget: FuzzTarget {
    static let name = "backup"

    private enum Mode: UInt8, CaseIterable {
        /// The unchanged header.
        case raw
        /// The header's fields, behind a frame and before a checksum that are right.
        case header
        /// The plaintext.
        case plaintext
        /// The plaintext with many zeros, so that it has several chunks.
        case chunks
    }

    private let keys: BackupKeys
    private let header: BackupHeader
    private let file = File()
    private let reader: BackupReader

    /// What the reader reads: another backup for each input.
    private final class File {
        var bytes: [UInt8] = []

        func read(_ offset: Int64, _ byteCount: Int) -> [UInt8] { Array(bytes.dropFirst(Int(offset)).prefix(byteCount)) }
    }

    init() throws {
        keys = try BackupKeys.derive(from: FixedKeys.passcode(), Self.record(), backupID: Self.id)
        header = BackupHeader(id: Self.id, passcode: try Self.record(), creationDate: 7, authenticatedBy: keys)
        file.bytes = header.encoded
        reader = try BackupReader(header, password: FixedKeys.passcode(), source: file.read)
    }

    private static let id = Identifier128(high: 8, low: 9)

    private static func record() throws -> PasscodeRecord {
        PasscodeRecord(salt: Array(repeating: 10, count: PasscodeRecord.saltByteCount), cost: try FixedKeys.cost())
    }

    static func seeds() throws -> [[UInt8]] {
        let keys = try BackupKeys.derive(from: FixedKeys.passcode(), record(), backupID: id)
        let header = BackupHeader(id: id, passcode: try record(), creationDate: 7, authenticatedBy: keys)
        let attributes = ItemAttributes([
            .account: .string("Skroob"), .service: .string("druidia"), .accessGroup: .string("T.app"), .accessible: .string("ak"),
        ])
        let reference = PersistentReference(itemClass: .genericPassword, id: ItemID(high: 1, low: 2))
        let items = [Data("12345".utf8), nil].map {
            BackupItem(reference: reference, accessibility: .whenUnlocked, attributes: attributes, secret: $0)
        }
        var summary = BackupSummary()
        summary.savedCount = items.count
        let plaintext = try items.flatMap { try BackupRecord.prefix(of: $0) + ($0.secret ?? Data()) } + BackupRecord.end(summary)
        return [
            [Mode.raw.rawValue] + header.encoded, [Mode.header.rawValue] + header.encoded[8...].dropLast(8),
            [Mode.plaintext.rawValue] + plaintext, [Mode.plaintext.rawValue] + BackupRecord.end(BackupSummary()),
            [Mode.chunks.rawValue, 0, 40, 1, 0] + plaintext,
        ]
    }

    func run(_ input: [UInt8]) throws {
        var input = InputReader(input)
        switch Mode.allCases[input.choice(below: Mode.allCases.count)] {
        case .raw: checkHeader(Array(input.rest))
        case .header: checkHeader(Self.framed(Array(input.rest)))
        case .plaintext: try checkPlaintext(Array(input.rest))
        case .chunks:
            let place = Int(input.byte()) << 8 | Int(input.byte())
            let zeroCount = (Int(input.byte()) << 8 | Int(input.byte())) * 4
            let bytes = Array(input.rest)
            try checkPlaintext(bytes.prefix(place) + Array(repeating: 0, count: zeroCount) + bytes.dropFirst(place))
        }
    }

    private static func framed(_ fields: [UInt8]) -> [UInt8] {
        var bytes = Array("KBAK".utf8)
        bytes.append(littleEndian: UInt16(1))
        bytes.append(littleEndian: UInt16(truncatingIfNeeded: fields.count + 16))
        bytes += fields
        return bytes + SHA256.hash(data: bytes).prefix(8)
    }

    private func checkHeader(_ bytes: [UInt8]) {
        let header = attempt(failingWith: .decode, .notAvailable) { () throws(KeychainFailure) in
            try BackupHeader(from: { offset, count in Array(bytes.dropFirst(Int(offset)).prefix(count)) })
        }
        guard let header else { return }
        expect(bytes.starts(with: header.encoded), "a header is kept in another form than it was read in")
        FixedKeys.expectBounded(header.passcode.cost)
        if header.isAuthentic(by: keys) { expect(header.encoded == self.header.encoded, "a foreign header counts as authentic") }
    }

    /// Reads as items that are written as the same bytes, or fails as damaged.
    private func checkPlaintext(_ plaintext: [UInt8]) throws {
        file.bytes = header.encoded + (try sealed(plaintext))
        var again: [UInt8] = []
        let summary = attempt(failingWith: .decode) { () throws(KeychainFailure) in
            try reader.forEachItem { item throws(KeychainFailure) in
                again += try BackupRecord.prefix(of: item)
                again += item.secret ?? Data()
            }
        }
        guard let summary else { return }
        again += BackupRecord.end(summary)
        expect(again == plaintext, "a backup is accepted in a form that is never written")
    }

    private func sealed(_ plaintext: [UInt8]) throws -> [UInt8] {
        let cipher = BackupChunkCipher(key: try keys.copiedChunkKey(), headerDigest: header.digest)
        var (sealed, rest, number): ([UInt8], ArraySlice<UInt8>, UInt64) = ([], plaintext[...], 0)
        repeat {
            let chunk = Array(rest.prefix(BackupHeader.chunkByteCount))
            rest = rest.dropFirst(chunk.count)
            sealed += try cipher.seal(chunk, number: number, isLast: rest.isEmpty)
            number += 1
        } while !rest.isEmpty
        return sealed
    }
}
