// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTesting
import Synchronization
import Testing

@testable import KeychainStore

/// Several threads' writes of which the later ones come, in their order, while the first one is at work.
struct WritesAtOnce {
    struct Write: Sendable {
        var generation = ItemStoreContract.keybag.generation
        var sharesFlush = true
        let body: @Sendable (any ItemWriting) throws(KeychainFailure) -> Void

        static func inserting(_ row: SealedRow) -> Write {
            Write { writing throws(KeychainFailure) in try writing.insert(row) }
        }
    }

    enum Outcome: Equatable, Sendable {
        case written, keybagChanged
        case failed(KeychainFailure)
        case missing

        var failure: KeychainFailure? {
            if case .failed(let failure) = self { failure } else { nil }
        }
    }

    let store: SQLiteItemStore

    /// The outcome of each, the first one's first.
    func run(_ first: Write, _ others: [Write]) -> [Outcome] {
        let store = store
        let box = Box(count: others.count + 1)
        let ended = DispatchGroup()
        let isAtWork = DispatchSemaphore(value: 0)
        let leading = Write(generation: first.generation, sharesFlush: first.sharesFlush) { writing throws(KeychainFailure) in
            isAtWork.signal()
            Self.wait { store.turns.waitingCount == others.count || box.isRepeated }
            box.noteRun()
            try first.body(writing)
        }
        start(leading, 0, ended, box)
        isAtWork.wait()
        for (index, write) in others.enumerated() {
            Self.wait { store.turns.waitingCount == index }
            start(write, index + 1, ended, box)
        }
        #expect(ended.wait(timeout: .now() + 120) == .success, "a write hangs")
        return box.outcomes.withLock { $0 }
    }

    private final class Box: Sendable {
        let outcomes: Mutex<[Outcome]>
        private let hasRun = Mutex(false)

        init(count: Int) { outcomes = Mutex([Outcome](repeating: .missing, count: count)) }

        var isRepeated: Bool { hasRun.withLock { $0 } }
        func noteRun() { hasRun.withLock { $0 = true } }
    }

    private func start(_ write: Write, _ index: Int, _ ended: DispatchGroup, _ box: Box) {
        let store = store
        ended.enter()
        Thread.detachNewThread {
            let outcome: Outcome
            do throws(KeychainFailure) {
                switch try store.write(ifKeybagGeneration: write.generation, sharesFlush: write.sharesFlush, write.body) {
                case .written: outcome = .written
                case .keybagChanged: outcome = .keybagChanged
                }
            } catch {
                outcome = .failed(error)
            }
            box.outcomes.withLock { $0[index] = outcome }
            ended.leave()
        }
    }

    /// Sooner or later it holds; not for ever, so that a test that fails ends.
    static func wait(until isMet: () -> Bool) {
        let end = ContinuousClock.now + .seconds(60)
        while !isMet(), ContinuousClock.now < end { usleep(500) }
    }
}
