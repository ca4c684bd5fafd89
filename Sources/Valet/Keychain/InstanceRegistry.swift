// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// A registry of weak references that returns the same instance for the same arguments.
///
/// `@unchecked Sendable`: the lock guards both variables.
final class InstanceRegistry<Key: Hashable & Sendable, Instance: AnyObject & Sendable>: @unchecked Sendable {
    private struct WeakReference {
        weak var instance: Instance?
    }

    private let lock = NSLock()
    private var references: [Key: WeakReference] = [:]
    /// The size of the dictionary at which entries of deallocated instances are removed.
    ///
    /// The size stays proportional to the number of live instances.
    private var sweepThreshold = 64

    /// Returns the live instance for `key`, or registers and returns the result of `make`.
    ///
    /// In a forked child, where another thread may have held the lock, returns a new instance and does not register it.
    func instance(for key: Key, make: () -> Instance) -> Instance {
        guard !isForkedChild else { return make() }
        return lock.withLock {
            if let instance = references[key]?.instance { return instance }
            if references.count >= sweepThreshold {
                references = references.filter { $0.value.instance != nil }
                sweepThreshold = max(64, references.count * 2)
            }
            let instance = make()
            references[key] = WeakReference(instance: instance)
            return instance
        }
    }
}

/// The observable properties that distinguish valets of one type.
struct InstanceKey: Hashable, Sendable {
    let namespace: KeychainNamespace
    private let identifier: ExactString

    init(_ namespace: KeychainNamespace, _ name: ValetName) {
        self.namespace = namespace
        identifier = ExactString(name.identifier.description)
    }
}

/// Text that is compared byte by byte, as in the keychain.
///
/// In Swift, "é" and "e" with a combining accent are equal; in the keychain they are not.
struct ExactString: Hashable, Sendable {
    let value: String

    init(_ value: String) {
        self.value = value
    }

    static func == (left: ExactString, right: ExactString) -> Bool {
        left.value.utf8.elementsEqual(right.value.utf8)
    }

    func hash(into hasher: inout Hasher) {
        for byte in value.utf8 { hasher.combine(byte) }
    }
}
