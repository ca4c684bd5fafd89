// SPDX-License-Identifier: Apache-2.0

/// What may be found after a power cut, by what the workload was told until then.
package struct PowerCutExpectation: Sendable {
    package enum Failure: Error {
        case unknownMark(String)
    }

    private let operations: [WorkloadOperation]
    /// Nil stands for "there is no keychain".
    package private(set) var worlds: Set<KeychainWorld?> = [nil]
    package private(set) var lastMark = "nothing begun"

    package init(_ plan: WorkloadPlan) {
        operations = plan.operations
    }

    /// What the workload wrote between its changes: `begin 7`, `acknowledged 7`, `failed 7 -36`.
    package mutating func apply(mark: String) throws {
        let words = mark.split(separator: " ")
        guard words.count >= 2, let index = Int(words[1]), operations.indices.contains(index) else { throw Failure.unknownMark(mark) }
        let operation = operations[index]
        switch words[0] {
        case "begin":
            before = worlds
            worlds = Set(worlds.flatMap { Self.during(operation, $0) })
        case "acknowledged": worlds = Set(before.map { Self.after(operation, $0) })
        // Done or not, or half done where an operation takes several steps: what was possible while it ran still is.
        case "failed": break
        default: throw Failure.unknownMark(mark)
        }
        lastMark = mark
    }

    /// When the operation that runs was begun.
    private var before: Set<KeychainWorld?> = []

    private static func after(_ operation: WorkloadOperation, _ world: KeychainWorld?) -> KeychainWorld? {
        if let world { return world.after(operation) }
        // Removing makes no keychain, nor does opening.
        switch operation {
        case .remove, .removeAll, .reopen, .makeOldFormat: return nil
        default: return KeychainWorld().after(operation)
        }
    }

    private static func during(_ operation: WorkloadOperation, _ world: KeychainWorld?) -> Set<KeychainWorld?> {
        // A keychain is made empty first.
        guard let world else { return Set([nil] + KeychainWorld().during(operation).map { Optional($0) }) }
        return Set(world.during(operation).map { Optional($0) })
    }

    /// What is wrong with what was found; nil when nothing is.
    package func complaint(about found: FoundKeychain) -> String? {
        switch found {
        case .unusable(let reason): return reason
        case .absent:
            guard !worlds.contains(nil) else { return nil }
            return "there is no keychain, and there was one"
        case .world(let world):
            guard !worlds.contains(world) else { return nil }
            let differences = worlds.map { $0.map { world.difference(from: $0) } ?? "a keychain instead of none" }
            return "found: " + (differences.min { $0.count < $1.count } ?? "nothing was expected")
        }
    }
}
