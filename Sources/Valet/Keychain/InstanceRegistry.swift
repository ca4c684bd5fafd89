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
    private var sweepThreshold = 64

    /// The live instance for `key`, or the one that `make` gives.
    func instance(for key: Key, make: () -> Instance) -> Instance {
        lock.withLock {
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

/// What valets of one type can be told apart by from outside.
struct InstanceKey: Hashable, Sendable {
    let sandbox: Sandbox
    private let identifier: ExactString

    init(_ sandbox: Sandbox, _ name: ValetName) {
        self.sandbox = sandbox
        identifier = ExactString(name.identifier.description)
    }
}

/// Text compared as the keychain compares it: byte by byte.
///
/// Swift takes "é" and "e" with a combining accent for equal, the keychain does not. What decides which item is meant
/// must follow the keychain.
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
