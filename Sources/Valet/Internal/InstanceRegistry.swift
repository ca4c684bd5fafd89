// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// Gives the same arguments the same instance for as long as somebody holds it.
///
/// `@unchecked Sendable`: the lock guards both variables.
final class InstanceRegistry<Key: Hashable & Sendable, Instance: AnyObject & Sendable>: @unchecked Sendable {
    private struct WeakReference {
        weak var instance: Instance?
    }

    private let lock = NSLock()
    private var references: [Key: WeakReference] = [:]
    /// Entries of released instances are dropped when the dictionary reaches this size, so that it stays in
    /// proportion to what is alive.
    private var sizeToSweepAt = 64

    /// The live instance for `key`, or the one that `make` gives.
    func instance(for key: Key, make: () -> Instance) -> Instance {
        lock.withLock {
            if let instance = references[key]?.instance { return instance }
            if references.count >= sizeToSweepAt {
                references = references.filter { $0.value.instance != nil }
                sizeToSweepAt = max(64, references.count * 2)
            }
            let instance = make()
            references[key] = WeakReference(instance: instance)
            return instance
        }
    }
}
