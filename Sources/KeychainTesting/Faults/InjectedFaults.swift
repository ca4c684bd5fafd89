// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import Synchronization

/// What a test wants to go wrong with the store, until it has gone wrong often enough.
final class InjectedFaults: Sendable {
    /// The moments at which something can go wrong.
    enum Moment {
        /// Before the store was looked at.
        case reading, writing
        /// When everything was said to be written that a call has to write, and something was.
        case committing
    }

    private struct Order {
        let calls: InMemoryKeychain.Calls
        let fault: InMemoryKeychain.Fault
        var remaining: Int

        func concerns(_ moment: Moment) -> Bool {
            switch (fault, moment) {
            case (.diskFull, .reading), (.diskFull, .writing): false
            case (.diskFull, .committing): calls != .reads
            case (.unavailable, .committing): false
            case (.inputOutput, .writing): false
            case (.unavailable, .reading), (.inputOutput, .reading): calls != .writes
            case (.unavailable, .writing), (.inputOutput, .committing): calls != .reads
            }
        }
    }

    private let orders = Mutex<[Order]>([])

    func add(_ fault: InMemoryKeychain.Fault, of calls: InMemoryKeychain.Calls, times: Int) {
        guard times > 0 else { return }
        orders.withLock { $0.append(Order(calls: calls, fault: fault, remaining: times)) }
    }

    func removeAll() {
        orders.withLock { $0.removeAll() }
    }

    /// What goes wrong at this moment, in the order in which it was asked for; nil: nothing.
    func take(at moment: Moment) -> InMemoryKeychain.Fault? {
        orders.withLock { orders in
            guard let index = orders.firstIndex(where: { $0.concerns(moment) }) else { return nil }
            let fault = orders[index].fault
            orders[index].remaining -= 1
            if orders[index].remaining == 0 { orders.remove(at: index) }
            return fault
        }
    }
}

extension InMemoryKeychain.Fault {
    /// What the file store says in such a case.
    var failure: KeychainFailure {
        switch self {
        case .unavailable: KeychainFailure(.notAvailable, "the store cannot be used (the test asked for that)")
        case .diskFull: KeychainFailure(.notAvailable, "the disk is full; nothing was changed (the test asked for that)")
        case .inputOutput: KeychainFailure(.inputOutput, "the disk answered with an error (the test asked for that)")
        }
    }
}
#endif
