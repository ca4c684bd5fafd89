// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

/// A store in memory in which a test lets things go wrong, at the moments at which they do in a file.
struct FaultyItemStore: ItemStore {
    let base: InMemoryItemStore
    let faults: InjectedFaults

    func read<Result>(
        _ body: (any ItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        if let fault = faults.take(at: .reading) { throw fault.failure }
        return try base.read(body)
    }

    func write<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        if let fault = faults.take(at: .writing) { throw fault.failure }
        var committed: InMemoryKeychain.Fault?
        let outcome = try base.write(ifKeybagGeneration: generation) { writing throws(KeychainFailure) in
            let result = try body(writing)
            let fault = faults.take(at: .committing)
            if let fault, fault != .inputOutput(isWritten: true) { throw fault.failure }
            committed = fault
            return result
        }
        if let committed { throw committed.failure }
        return outcome
    }

    func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure) {
        base.advanceLockEpoch(extent)
    }
}
#endif
