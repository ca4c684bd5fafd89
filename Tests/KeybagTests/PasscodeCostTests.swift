// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Keybag

@Suite("The cost of a passcode")
struct PasscodeCostTests {
    struct Parameters: CustomTestStringConvertible {
        let roundsExponent: UInt8
        let blockSize: UInt32
        let parallelism: UInt32

        init(_ roundsExponent: UInt8, _ blockSize: UInt32, _ parallelism: UInt32) {
            self.roundsExponent = roundsExponent
            self.blockSize = blockSize
            self.parallelism = parallelism
        }

        var testDescription: String { "N = 2^\(roundsExponent), r = \(blockSize), p = \(parallelism)" }

        var cost: PasscodeCost? {
            PasscodeCost(roundsExponent: roundsExponent, blockSize: blockSize, parallelism: parallelism)
        }
    }

    static let allowed = [
        Parameters(10, 1, 1), Parameters(10, 8, 16), Parameters(15, 1, 1), Parameters(16, 8, 1), Parameters(16, 16, 1),
        Parameters(20, 8, 1), Parameters(20, 8, 4), Parameters(22, 2, 1), Parameters(19, 16, 4),
    ]

    static let refused = [
        Parameters(0, 8, 1), Parameters(9, 8, 1), Parameters(16, 0, 1), Parameters(16, 8, 0), Parameters(16, 17, 1),
        Parameters(16, 8, 17), Parameters(16, 1, 1), Parameters(21, 8, 1), Parameters(20, 9, 1), Parameters(20, 8, 5),
        Parameters(31, 2, 1), Parameters(63, 8, 1), Parameters(255, 8, 1), Parameters(16, .max, .max), Parameters(30, 16, 16),
    ]

    @Test("Within the bounds it is taken", arguments: allowed)
    func allowedCost(_ parameters: Parameters) throws {
        #expect(try #require(parameters.cost).memoryByteCount <= 1 << 30)
    }

    @Test("Outside, it is refused", arguments: refused)
    func refusedCost(_ parameters: Parameters) {
        #expect(parameters.cost == nil)
    }

    @Test("The standard cost is within the bounds and takes 64 MiB")
    func standard() {
        #expect(PasscodeCost(roundsExponent: 16, blockSize: 8, parallelism: 1) == .standard)
        #expect(PasscodeCost.standard.memoryByteCount == 64 << 20)
    }
}
