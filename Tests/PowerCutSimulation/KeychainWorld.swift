// SPDX-License-Identifier: Apache-2.0

/// What a keychain holds: all values, and the passcode it opens with.
package struct KeychainWorld: Hashable, Sendable {
    /// By `valet/key`; what `brief` makes of the values, because thousands of worlds are kept.
    package private(set) var items: [String: String] = [:]
    package var passcode: String?

    package init(items: [String: String] = [:], passcode: String? = nil) {
        self.passcode = passcode
        for (name, value) in items { set(name, to: value) }
    }

    /// What the operation makes of it.
    func after(_ operation: WorkloadOperation) -> KeychainWorld {
        var world = self
        switch operation {
        case .set(let item, let value): world.set(item.description, to: value)
        case .remove(let item): world.items[item.description] = nil
        case .removeAll(let valet): world.items = items.filter { !$0.key.hasPrefix(valet.rawValue + "/") }
        case .migrate(let source, let destination, let removesOriginals):
            for key in keys(in: source) {
                world.items["\(destination.rawValue)/\(key)"] = items["\(source.rawValue)/\(key)"]
                if removesOriginals { world.items["\(source.rawValue)/\(key)"] = nil }
            }
        case .setPasscode(let passcode), .changePasscode(_, let passcode, _): world.passcode = passcode
        case .removePasscode:
            world = after(.removeAll(.withPasscode))
            world.passcode = nil
        case .reopen, .makeOldFormat: break
        }
        return world
    }

    /// All that may be found while the operation is being done.
    ///
    /// A migration takes several steps: first every value is copied, and only when all are there do the originals go.
    func during(_ operation: WorkloadOperation) -> Set<KeychainWorld> {
        guard case .migrate(let source, let destination, let removesOriginals) = operation else { return [self, after(operation)] }
        let keys = keys(in: source)
        let copied = after(.migrate(from: source, to: destination, removingOriginals: false))
        var worlds: Set<KeychainWorld> = [self, copied]
        for chosen in 0..<(1 << keys.count) {
            var (copying, removing) = (self, copied)
            for (index, key) in keys.enumerated() where chosen >> index & 1 == 1 {
                copying.items["\(destination.rawValue)/\(key)"] = items["\(source.rawValue)/\(key)"]
                removing.items["\(source.rawValue)/\(key)"] = nil
            }
            worlds.insert(copying)
            if removesOriginals { worlds.insert(removing) }
        }
        return worlds
    }

    func keys(in valet: WorkloadValet) -> [String] {
        items.keys.filter { $0.hasPrefix(valet.rawValue + "/") }.map { String($0.dropFirst(valet.rawValue.count + 1)) }.sorted()
    }

    mutating func set(_ name: String, to value: String) { items[name] = Self.brief(value) }

    /// Unlike that of any other value, within one process.
    private static func brief(_ value: String) -> String {
        var hasher = Hasher()
        hasher.combine(value)
        return "\(value.prefix(20))… of \(value.utf8.count) bytes, \(hasher.finalize())"
    }

    /// How it differs.
    package func difference(from other: KeychainWorld) -> String {
        var words: [String] = []
        for key in Set(items.keys).union(other.items.keys).sorted() where items[key] != other.items[key] {
            words.append("\(key): \(items[key] ?? "absent") instead of \(other.items[key] ?? "absent")")
        }
        if passcode != other.passcode { words.append("passcode: \(passcode ?? "none") instead of \(other.passcode ?? "none")") }
        return words.joined(separator: "; ")
    }
}
