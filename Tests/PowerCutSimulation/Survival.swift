// SPDX-License-Identifier: Apache-2.0
package import KeychainTestSupport

/// What a power cut leaves of changes that were not flushed.
package enum Survival {
    case nothing
    case everything
    /// For each file and directory by itself: none, all, the first ones with the last of them torn, any of them, or any sectors of any.
    case some(SeededGenerator)

    /// What a disk writes whole.
    private static let sectorByteCount = 512

    /// The decision about one file or directory.
    struct Decision {
        /// What is left of each change, in their order.
        private let fates: [Fate]
        private var generator: SeededGenerator
        private var next = 0

        private enum Fate { case gone, whole, torn }

        init(stepCount: Int, _ survival: inout Survival) {
            switch survival {
            case .nothing: (fates, generator) = (Array(repeating: .gone, count: stepCount), SeededGenerator(seed: 0))
            case .everything: (fates, generator) = (Array(repeating: .whole, count: stepCount), SeededGenerator(seed: 0))
            case .some(var random):
                fates = Self.someFates(stepCount, &random)
                generator = SeededGenerator(seed: random.next())
                survival = .some(random)
            }
        }

        private static func someFates(_ count: Int, _ random: inout SeededGenerator) -> [Fate] {
            guard count > 0 else { return [] }
            switch Int.random(in: 0..<8, using: &random) {
            case 0: return Array(repeating: .gone, count: count)
            case 1: return Array(repeating: .whole, count: count)
            case 2, 3:
                let cut = Int.random(in: 0..<count, using: &random)
                return (0..<count).map { $0 < cut ? .whole : $0 == cut ? .torn : .gone }
            case 4:
                // All but one.
                let missing = Int.random(in: 0..<count, using: &random)
                return (0..<count).map { $0 == missing ? .gone : .whole }
            case 5, 6: return (0..<count).map { _ in Bool.random(using: &random) ? .whole : .gone }
            default: return (0..<count).map { _ in [.gone, .whole, .torn, .torn][Int.random(in: 0..<4, using: &random)] }
            }
        }

        /// For changes that cannot be torn.
        func keepsWhole(_ index: Int) -> Bool { fates[index] != .gone }

        /// To be asked for each change once, in their order.
        ///
        /// Bytes outside of a write are never touched: SQLite takes that for granted ("powersafe overwrite"), and so do we.
        mutating func whatIsLeft(of change: DiskFile.Change) -> [DiskFile.Change] {
            defer { next += 1 }
            switch (fates[next], change) {
            case (.gone, _): return []
            case (.whole, _): return [change]
            case (.torn, .truncation): return Bool.random(using: &generator) ? [change] : []
            case (.torn, .write(let offset, let bytes)): return sectors(of: bytes, at: offset)
            }
        }

        private mutating func sectors(of bytes: [UInt8], at offset: Int) -> [DiskFile.Change] {
            var left: [DiskFile.Change] = []
            var start = 0
            while start < bytes.count {
                let end = min(bytes.count, start + Survival.sectorByteCount - (offset + start) % Survival.sectorByteCount)
                if Bool.random(using: &generator) { left.append(.write(offset: offset + start, bytes: Array(bytes[start..<end]))) }
                start = end
            }
            return left
        }
    }

    mutating func decision(stepCount: Int) -> Decision { Decision(stepCount: stepCount, &self) }
}
