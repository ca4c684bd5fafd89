// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import Keybag

@Suite("A damaged backup")
struct BackupDamageTests {
    private static let sealedChunkByteCount = 65_536 + 16

    /// Four chunks, the last one short.
    private static func long() throws -> BackupFile {
        try BackupFile([BackupItem("one", Data(repeating: 1, count: 100_000)), BackupItem("two", Data(repeating: 2, count: 100_000))])
    }

    @Test("With any one bit altered it is damaged, and neither of another password nor newer")
    func altered() throws {
        let good = try BackupFile([BackupItem("one", Data("12345".utf8))])
        #expect(try good.contents().items.count == 1)
        for index in good.bytes.indices {
            var altered = good
            altered.bytes[index] ^= 1 << (index % 8)
            #expect(try altered.statusOfReading() == .decode, "byte \(index)")
        }
    }

    @Test("Cut anywhere, it is damaged")
    func cut() throws {
        let good = try BackupFile([BackupItem("one", Data("12345".utf8))])
        for count in good.bytes.indices {
            #expect(try BackupFile(Array(good.bytes.prefix(count))).statusOfReading() == .decode, "\(count) bytes")
        }
    }

    @Test("Cut between two chunks it is damaged: the end is missing", arguments: 0...3)
    func cutBetweenChunks(_ count: Int) throws {
        let good = try Self.long()
        #expect(good.bytes.count > 118 + 3 * Self.sealedChunkByteCount)
        let cut = BackupFile(Array(good.bytes.prefix(118 + count * Self.sealedChunkByteCount)))
        #expect(try cut.statusOfReading() == .decode)
    }

    /// What befalls chunks as a whole.
    enum Mixing: CaseIterable {
        case swapped, repeated, leftOut, lastTwice, ofAnotherBackup
    }

    @Test("Chunks swapped, repeated, left out or of another backup with the same password: damaged", arguments: Mixing.allCases)
    func mixed(_ mixing: Mixing) throws {
        let good = try Self.long()
        let other = try Self.long()
        func chunk(_ number: Int, of file: BackupFile = good) -> [UInt8] {
            let start = 118 + number * Self.sealedChunkByteCount
            return Array(file.bytes[start..<min(start + Self.sealedChunkByteCount, file.bytes.count)])
        }
        let chunks =
            switch mixing {
            case .swapped: [chunk(1), chunk(0), chunk(2), chunk(3)]
            case .repeated: [chunk(0), chunk(1), chunk(1), chunk(2), chunk(3)]
            case .leftOut: [chunk(0), chunk(2), chunk(3)]
            case .lastTwice: [chunk(0), chunk(1), chunk(2), chunk(3), chunk(3)]
            case .ofAnotherBackup: [chunk(0), chunk(1, of: other), chunk(2), chunk(3)]
            }
        let header = Array(good.bytes.prefix(118))
        #expect(try BackupFile(header + [chunk(0), chunk(1), chunk(2), chunk(3)].joined()).statusOfReading() == .success)
        #expect(try BackupFile(header + chunks.joined()).statusOfReading() == .decode)
    }
}
