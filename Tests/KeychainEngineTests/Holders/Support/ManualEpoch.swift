// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import Synchronization

/// A store's count of locks, without the store.
final class ManualEpoch: Sendable {
    private let state: Mutex<Result<LockEpoch, KeychainFailure>>

    init(_ epoch: LockEpoch = LockEpoch(rawValue: 7)) {
        state = Mutex(.success(epoch))
    }

    var source: LockEpochSource {
        { () throws(KeychainFailure) in try self.state.withLock { $0 }.get() }
    }

    func lock(_ extent: LockExtent) {
        state.withLock { $0 = $0.map { $0.advanced(by: extent) } }
    }

    func breakDown() {
        state.withLock { $0 = .failure(KeychainFailure(.inputOutput, "the disk is gone")) }
    }

    func set(_ epoch: LockEpoch) {
        state.withLock { $0 = .success(epoch) }
    }
}
