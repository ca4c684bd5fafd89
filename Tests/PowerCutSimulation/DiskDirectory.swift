// SPDX-License-Identifier: Apache-2.0

/// A directory's names: those on the disk for certain, and the changes that a power cut may take or leave, each as a whole.
struct DiskDirectory {
    enum Change {
        case added(name: String, DiskNode)
        case removed(name: String)
        /// In one step: there is no moment without either name.
        case renamed(from: String, to: String, DiskNode)
    }

    private var durable: [String: DiskNode] = [:]
    private var pending: [Change] = []

    var hasUncertainSteps: Bool { !pending.isEmpty }

    mutating func change(_ change: Change) { pending.append(change) }

    mutating func flush() {
        for change in pending { Self.apply(change, to: &durable) }
        pending = []
    }

    /// What `survival` leaves, in any combination: two changes of a directory may reach the disk in any order.
    func names(_ survival: inout Survival) -> [String: DiskNode] {
        var names = durable
        let decision = survival.decision(stepCount: pending.count)
        for (index, change) in pending.enumerated() where decision.keepsWhole(index) { Self.apply(change, to: &names) }
        return names
    }

    private static func apply(_ change: Change, to names: inout [String: DiskNode]) {
        switch change {
        case .added(let name, let node): names[name] = node
        case .removed(let name): names[name] = nil
        case .renamed(let from, let to, let node):
            names[from] = nil
            names[to] = node
        }
    }
}

/// What a name stands for: one of the files or directories of a `DiskModel`.
enum DiskNode: Hashable {
    case file(Int)
    case directory(Int)
}
