// SPDX-License-Identifier: Apache-2.0
import KeychainTestSupport
import Testing

@Suite("A damaged -wal file, left behind by a killed process, makes nothing vanish that was stored")
struct DamagedLogTests {
    private static let frameByteCount = 24 + 4_096

    @Test("One flipped bit before the last transaction: the keychain is refused as damaged, and verifying says so")
    func flipped() async throws {
        let images = try DamagedImages(ofLogWithLastItem: "last")
        let starts = stride(from: 32, to: images.bytes.count, by: Self.frameByteCount)
        // A frame that ends a transaction bears the size of the database.
        let commits = starts.filter { start in images.bytes[start + 4..<start + 8].contains { $0 != 0 } }
        try #require(commits.count == 5)
        let end = commits[3] + Self.frameByteCount
        // There are several times as many bytes as in the database.
        let step = DamagedImages.byteStep == 1 ? 1 : 5 * DamagedImages.byteStep
        let flips = stride(from: Int.random(in: 0..<step), to: end, by: step).map { position in
            let bit = Int.random(in: 0..<8)
            return DamagedImages.Damage(name: "bit \(bit) of byte \(position)") { $0[position] ^= 1 << bit }
        }
        let tally = try await images.tally(flips)
        #expect(tally.imageCount == flips.count)
        #expect(tally.refusedCount == flips.count)
        #expect(tally.wrong.isEmpty, "\(tally.wrong.prefix(5))")
        #expect(tally.silent.isEmpty, "\(tally.silent.prefix(5)) of \(tally.silent.count)")
        #expect(tally.unnamed.isEmpty, "\(tally.unnamed.prefix(5)) of \(tally.unnamed.count)")
    }
}
