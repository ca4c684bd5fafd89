// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine

/// Compares what the devices have with each other, and with the logs of the processes that wrote.
///
/// A write must be live, which is visible or a conflict copy, unless a write that saw it replaced it. Then it must not be live.
struct Comparison {
    private(set) var differences: [String] = []
    private(set) var losses: [String] = []
    /// Values that are on a device although a write replaced or deleted them.
    private(set) var revivals: [String] = []
    private let writes: [String: LoggedWrite]
    /// The writes that saw the value of a write.
    private let successors: [String: [LoggedWrite]]
    private let states: [State]

    /// What one device has, by the writes whose values these are.
    private struct State: Equatable {
        var visible: [String: String] = [:]
        var copies: [String: Set<String>] = [:]
        /// All of these.
        var live: Set<String> = []
    }

    init(of root: String) throws {
        let logged = try Device.numbers.flatMap { try WriteLog.writes(of: $0, in: root) }
        writes = Dictionary(uniqueKeysWithValues: logged.map { ($0.write, $0) })
        successors = logged.reduce(into: [:]) { successors, write in
            for seen in write.seen { successors[seen, default: []].append(write) }
        }
        states = try Device.numbers.map { try Self.state(of: Device($0, in: root)) }
        compareStates()
        for write in logged where !write.isDeletion { check(write) }
        for write in successors.keys where writes[write] == nil { differences.append("\(write) was read, but never written") }
    }

    /// Reads the visible values as programs do, and the copies as agents do.
    private static func state(of device: Device) throws -> State {
        var state = State()
        for number in 0..<Item.count {
            guard let item = try Item.find(number, in: device.keychain) else { continue }
            state.visible["item \(number)"] = item.secret.flatMap { Item.write(of: $0) } ?? "a damaged value"
        }
        try device.keychain.synchronize { ledger, items throws(KeychainFailure) in
            for version in try ledger.liveVersions(after: nil, limit: .max) where version.item == nil {
                let content = try items.content(of: version)
                let account = content.flatMap { ItemAttributes(encoded: $0.attributes)?.text(.account) } ?? "a damaged item"
                state.copies[account, default: []].insert(content?.secret.flatMap { Item.write(of: $0) } ?? "a damaged value")
            }
        }
        state.live = state.copies.values.reduce(Set(state.visible.values)) { $0.union($1) }
        return state
    }

    var failureCount: Int { differences.count + losses.count + revivals.count }

    private mutating func compareStates() {
        for (state, device) in zip(states, Device.numbers).dropFirst() where state != states[0] {
            let items = (0..<Item.count).map { "item \($0)" }.filter {
                state.visible[$0] != states[0].visible[$0] || state.copies[$0] != states[0].copies[$0]
            }
            differences.append("device \(device) differs from device 1 in \(items.count) items, such as \(items.first ?? "none")")
        }
    }

    private mutating func check(_ write: LoggedWrite) {
        guard hasHappened(write) else { return }
        let successors = successors[write.write] ?? []
        for (state, device) in zip(states, Device.numbers) {
            if state.live.contains(write.write) {
                for successor in successors where hasHappened(successor) {
                    let verb = successor.isDeletion ? "deleted" : "replaced"
                    revivals.append("\(write.write) of item \(write.item) is on device \(device), although \(successor.write) \(verb) it")
                }
            } else if !successors.contains(where: { hasHappened($0) || $0.isDeletion }) {
                losses.append("\(write.write) of item \(write.item) is lost on device \(device)")
            }
        }
    }

    /// Whether a write has certainly happened.
    ///
    /// A deletion that was not acknowledged leaves no trace.
    private func hasHappened(_ write: LoggedWrite) -> Bool {
        write.isAcknowledged || !write.isDeletion && (successors[write.write] != nil || states.contains { $0.live.contains(write.write) })
    }

    var summary: String {
        let acknowledged = writes.values.filter(\.isAcknowledged)
        let conflicts = successors.values.count { Set($0.filter(\.isAcknowledged).map { $0.write.prefix { $0 != "." } }).count > 1 }
        return """
            \(acknowledged.count) writes, \(acknowledged.count(where: \.isDeletion)) of them deletions, \
            \(writes.count - acknowledged.count) without an acknowledgement; \(conflicts) values changed by two devices at once; \
            \(states[0].visible.count) items and \(states[0].copies.values.reduce(0) { $0 + $1.count }) conflict copies at the end; \
            \(losses.count) values lost, \(revivals.count) not replaced
            """
    }
}
