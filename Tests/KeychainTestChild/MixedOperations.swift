// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainServices
import KeychainTestSupport
import Synchronization
import Valet

extension ChildCommand {
    /// PROCESS THREADS SECONDS [stale]: carries out random operations on keys that all such processes share.
    ///
    /// Prints how many descriptors it has opened and not closed after each half of the time, then the operations. `stale` is a planted fault: every tenth read
    /// returns an earlier answer.
    static func mixedOperations(_ arguments: [String]) throws {
        guard arguments.count >= 3, let process = Int(arguments[0]), let threadCount = Int(arguments[1]), let seconds = Double(arguments[2])
        else { throw BadArguments() }
        let inheritedCount = try openDescriptorCount()
        let worker = MixedWorker(valet: try testValet("shared"), remembersReads: arguments.dropFirst(3).first == "stale")
        say("ready")
        // All begin together.
        guard readLine() != nil else { throw BadArguments() }
        let history = Mutex<[HistoryEntry]>([])
        for half in 0..<2 {
            let end = MixedWorker.nowNanoseconds() + UInt64(seconds / 2 * 1e9)
            let threads = (0..<threadCount).map { thread in
                let finished = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    let operations = worker.run(number: (process * threadCount + thread) * 2 + half, untilNanoseconds: end)
                    history.withLock { $0 += operations }
                    finished.signal()
                }
                return finished
            }
            for thread in threads { thread.wait() }
            say("descriptors \(try openDescriptorCount() - inheritedCount)")
        }
        for operation in history.withLock({ $0 }) { say(operation.description) }
        say("end")
    }
}

/// The operations of the threads of one process.
private struct MixedWorker: Sendable {
    let valet: Valet
    let remembersReads: Bool
    private let remembered = RememberedReads()

    init(valet: Valet, remembersReads: Bool) {
        self.valet = valet
        self.remembersReads = remembersReads
    }

    /// Fewer keys than threads, so that operations on one key overlap.
    private static let keys = (0..<12).flatMap { ["item-\($0)", "valet-\($0)"] }

    /// The same clock in all processes.
    static func nowNanoseconds() -> UInt64 {
        var time = timespec()
        // One structure, which the call sets.
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    func run(number: Int, untilNanoseconds end: UInt64) -> [HistoryEntry] {
        var generator = SystemRandomNumberGenerator()
        var operations: [HistoryEntry] = []
        var next = number << 32
        while Self.nowNanoseconds() < end, let key = Self.keys.randomElement(using: &generator) {
            let verbs: [HistoryEntry.Verb] =
                key.hasPrefix("valet") ? [.set, .set, .read, .read, .remove] : [.add, .add, .update, .read, .read, .remove]
            guard let verb = verbs.randomElement(using: &generator) else { break }
            next += 1
            let written = verb == .read || verb == .remove ? 0 : next
            let start = Self.nowNanoseconds()
            let answer = perform(verb, key, written)
            operations.append(
                HistoryEntry(
                    key: key, verb: verb, written: written, answer: answer, startNanoseconds: start, endNanoseconds: Self.nowNanoseconds()))
        }
        return operations
    }

    private func perform(_ verb: HistoryEntry.Verb, _ key: String, _ written: Int) -> HistoryEntry.Answer {
        guard verb == .read else { return key.hasPrefix("valet") ? withValet(verb, key, written) : withSecItem(verb, key, written) }
        if remembersReads, let old = remembered.every(10, key) { return old }
        let answer = key.hasPrefix("valet") ? withValet(verb, key, written) : withSecItem(verb, key, written)
        if remembersReads { remembered.note(answer, key) }
        return answer
    }

    private func withValet(_ verb: HistoryEntry.Verb, _ key: String, _ written: Int) -> HistoryEntry.Answer {
        do {
            switch verb {
            case .read:
                guard let value = Int(try valet.string(forKey: key)) else { return .failed(errSecDecode) }
                return .value(value)
            case .remove: try valet.removeObject(forKey: key)
            default: try valet.setString(String(written), forKey: key)
            }
            return .done
        } catch KeychainError.itemNotFound {
            return .notFound
        } catch {
            return .failed(errSecNotAvailable)
        }
    }

    private func withSecItem(_ verb: HistoryEntry.Verb, _ key: String, _ written: Int) -> HistoryEntry.Answer {
        var query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword as String, kSecAttrService as String: "shared", kSecAttrAccount as String: key,
        ]
        let value = [kSecValueData as String: Data(String(written).utf8)]
        let status: OSStatus
        switch verb {
        case .read:
            query[kSecReturnData as String] = true
            var result: CFTypeRef?
            // The pointer is used during the call only.
            status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
            if status == errSecSuccess {
                let number = (result as? Data).flatMap { Int(String(decoding: $0, as: UTF8.self)) }
                return number.map { .value($0) } ?? .failed(errSecDecode)
            }
        case .remove: status = SecItemDelete(query as CFDictionary)
        case .update: status = SecItemUpdate(query as CFDictionary, value as CFDictionary)
        case .add, .set: status = SecItemAdd(query.merging(value) { $1 } as CFDictionary, nil)
        }
        switch status {
        case errSecSuccess: return .done
        case errSecItemNotFound: return .notFound
        case errSecDuplicateItem: return .duplicate
        default: return .failed(status)
        }
    }
}

/// The planted fault: a cache that is never invalidated.
private final class RememberedReads: Sendable {
    private let state = Mutex<(answers: [String: HistoryEntry.Answer], count: Int)>(([:], 0))

    /// Returns the earlier answer at every `count`-th call, else nil.
    func every(_ count: Int, _ key: String) -> HistoryEntry.Answer? {
        state.withLock {
            $0.count += 1
            return $0.count % count == 0 ? $0.answers[key] : nil
        }
    }

    func note(_ answer: HistoryEntry.Answer, _ key: String) {
        state.withLock { if $0.answers[key] == nil || $0.count % 3 == 0 { $0.answers[key] = answer } }
    }
}
