// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("A damaged file gives no wrong secret, and says 'not found' of nothing that is there")
struct DamagedPageTests {
    private typealias Damage = DamagedImages.Damage

    private static func expectHonest(_ tally: DamagedImages.Tally) {
        #expect(tally.wrong.isEmpty, "\(tally.wrong.prefix(5))")
        #expect(tally.silent.isEmpty, "\(tally.silent.prefix(5)) of \(tally.silent.count)")
        #expect(tally.unnamed.isEmpty, "\(tally.unnamed.prefix(5)) of \(tally.unnamed.count)")
        #expect(tally.refusedCount > 0)
    }

    private static func mention(_ page: Int) -> String { "page \(page + 1) of the file" }

    /// One bit in each of the bytes, another one in each.
    private static func flips(_ images: DamagedImages, step: Int) -> [Damage] {
        let offset = Int.random(in: 0..<step)
        return stride(from: offset, to: images.bytes.count, by: step).map { position in
            let bit = Int.random(in: 0..<8)
            return Damage(name: "bit \(bit) of byte \(position)", mention: mention(position / DamagedImages.pageByteCount)) { bytes in
                bytes[position] ^= 1 << bit
            }
        }
    }

    @Test("One flipped bit, anywhere: what it touches is refused, and verifying names the page")
    func flipped() async throws {
        let images = try DamagedImages()
        let flips = Self.flips(images, step: DamagedImages.byteStep)
        let tally = try await images.tally(flips)
        #expect(tally.imageCount == flips.count)
        Self.expectHonest(tally)
    }

    @Test("The test above can fail: without checksums flipped bits make items vanish")
    func flippedWithoutChecksums() async throws {
        let images = try DamagedImages(formatVersion: 1)
        let tally = try await images.tally(Self.flips(images, step: 41))
        #expect(!tally.silent.isEmpty)
        #expect(tally.wrong.isEmpty, "what is sealed is safe even so: \(tally.wrong)")
    }

    @Test("A page of zeros, of ones, or of chance")
    func overwritten() async throws {
        let images = try DamagedImages()
        let contents: [(String, @Sendable () -> UInt8)] = [
            ("zeros", { 0 }), ("ones", { 0xFF }), ("chance", { UInt8.random(in: 0 ... .max) }),
        ]
        let damages = (0..<images.pageCount).flatMap { page in
            contents.map { name, byte in
                Damage(name: "page \(page + 1): \(name)", mention: Self.mention(page)) { bytes in
                    let start = page * DamagedImages.pageByteCount
                    for index in start..<start + DamagedImages.pageByteCount { bytes[index] = byte() }
                }
            }
        }
        Self.expectHonest(try await images.tally(damages))
    }

    @Test("Several pages at once: each is named")
    func several() throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = directory + "/home"
            try LocalKeychain(home: home).addItem("kept", "a secret")
            let handle = try FileHandle(forWritingTo: URL(filePath: home + "/keychain.db"))
            let pages: [UInt64] = [4, 6, 8]
            for page in pages {
                try handle.seek(toOffset: (page - 1) * 4_096 + 100)
                try handle.write(contentsOf: Data("scratched".utf8))
            }
            try handle.close()
            let problems = try LocalKeychain(home: home).verify(purgingQuarantine: false).structuralProblems
            for page in 1...10 as ClosedRange<UInt64> {
                #expect(problems.contains { $0.contains("page \(page) of the file") } == pages.contains(page), "\(page): \(problems)")
            }
        }
    }

    @Test("Two pages in each other's place")
    func swapped() async throws {
        let images = try DamagedImages()
        let pairs = (0..<images.pageCount).flatMap { first in (first + 1..<images.pageCount).map { (first, $0) } }
        let damages = pairs.map { first, second in
            Damage(name: "pages \(first + 1) and \(second + 1)", mention: Self.mention(second)) { bytes in
                for index in 0..<DamagedImages.pageByteCount {
                    bytes.swapAt(first * DamagedImages.pageByteCount + index, second * DamagedImages.pageByteCount + index)
                }
            }
        }
        Self.expectHonest(try await images.tally(damages))
    }

    @Test("A file that ends early, or goes on")
    func cut() async throws {
        let images = try DamagedImages()
        let step = DamagedImages.byteStep == 1 ? 1 : 97
        let lengths = Set(stride(from: Int.random(in: 0..<step), to: images.bytes.count, by: step))
            .union((0..<images.pageCount).map { $0 * DamagedImages.pageByteCount }).sorted()
        Self.expectHonest(
            try await images.tally(lengths.map { length in Damage(name: "\(length) bytes") { $0.removeLast($0.count - length) } }))
        let longer = [1, 100, 4_096, 10_000].map { count in
            Damage(name: "\(count) bytes more") { $0 += [UInt8](repeating: 7, count: count) }
        }
        let tally = try await images.tally(longer)
        #expect(tally.wrong.isEmpty && tally.silent.isEmpty && tally.unnamed.isEmpty, "\(tally)")
    }
}
