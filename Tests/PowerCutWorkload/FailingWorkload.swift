// SPDX-License-Identifier: Apache-2.0
import CDiskRecorder
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import PowerCutSimulation

/// A way in which system calls below the keychain's directory fail.
enum FailingDisk: String, CaseIterable {
    case inputOutput = "EIO"
    case full = "ENOSPC"
    case readOnly = "EROFS"
    /// Half of the bytes are transferred, as POSIX allows.
    case short
    /// Writes are lost silently, which proves that the loss is found.
    case lying

    var errorNumber: Int32 {
        switch self {
        case .inputOutput: EIO
        case .full: ENOSPC
        case .readOnly: EROFS
        case .short: 0
        case .lying: -1
        }
    }

    /// The kinds of calls that can fail in this way.
    var kinds: UInt32 {
        switch self {
        case .inputOutput: UInt32(DISK_RECORDER_LOOKS | DISK_RECORDER_CHANGES | DISK_RECORDER_FLUSHES | DISK_RECORDER_CLOSES)
        case .full: UInt32(DISK_RECORDER_CHANGES | DISK_RECORDER_FLUSHES)
        case .readOnly: UInt32(DISK_RECORDER_CHANGES)
        case .short, .lying: UInt32(DISK_RECORDER_TRANSFERS)
        }
    }

    /// Makes call `number` fail and, with `lasting`, all calls after it.
    func begin(atCall number: UInt64, lasting: Bool) { disk_recorder_fail(kinds, number, errorNumber, lasting) }

    /// Ends the failures, and returns the first call that failed, if any.
    static func end() -> String? {
        // The recorder's own text, which stays until the next call; it is copied.
        let call = unsafe String(cString: disk_recorder_failed_call())
        disk_recorder_fail(0, 0, 0, false)
        return call.isEmpty ? nil : call
    }

    static var callCount: UInt64 { disk_recorder_call_count() }
}

/// Repeats a small plan, each time with another failing call, and examines the resulting keychain.
enum FailingWorkload {
    /// ROOT LOG FAILURE once|lasting STRIDE OFFSET: prints refusals and wrong results, and at last the number of calls.
    ///
    /// The calls with a number equal to OFFSET modulo STRIDE fail in turn.
    static func run(_ arguments: [String]) throws {
        guard arguments.count == 6, let disk = FailingDisk(rawValue: arguments[2]), let stride = UInt64(arguments[4]),
            let offset = UInt64(arguments[5]), stride > 0
        else { throw BadArguments() }
        guard unsafe disk_recorder_start(arguments[0], arguments[1]) == 0 else { throw BadArguments() }
        let round = Round(root: arguments[0], disk: disk, isLasting: arguments[3] == "lasting")
        guard let callCount = try round.countCalls() else { throw BadArguments() }
        var refusals: [String: Int] = [:]
        var runCount = 0
        for number in 1...callCount where number % stride == offset {
            runCount += 1
            for refusal in try round.run(failingCall: number) { refusals[refusal, default: 0] += 1 }
        }
        for (refusal, count) in refusals.sorted(by: { $0.key < $1.key }) { print("\(count) refused: \(refusal)") }
        print("calls \(callCount), rounds \(runCount)")
    }

    /// Creates a keychain; adds, replaces, and removes items; stores a value of several pages; reopens; and writes again.
    private static let plan: WorkloadPlan = {
        let (one, two) = (WorkloadItem(valet: .everyday, key: "one"), WorkloadItem(valet: .everyday, key: "two"))
        return WorkloadPlan(operations: [
            .set(one, to: "first value"), .set(two, to: "second value"), .set(one, to: "another first value"), .remove(two),
            .set(two, to: String(repeating: "a long value ", count: 1_200)), .reopen, .set(one, to: "the last value"), .reopen,
        ])
    }()

    private struct Round {
        let root: String
        let disk: FailingDisk
        let isLasting: Bool

        private var home: String { root + "/home" }

        func countCalls() throws -> UInt64? {
            try DiskImage().write(to: root)
            var expectation = PowerCutExpectation(plan)
            disk.begin(atCall: 0, lasting: false)
            let refusals = try carryOut(&expectation)
            let count = FailingDisk.callCount
            _ = FailingDisk.end()
            guard refusals.isEmpty, complaint(expectation) == nil else { return nil }
            return count
        }

        /// Returns the status and reason of each refusal, with the call that failed.
        func run(failingCall number: UInt64) throws -> [String] {
            try DiskImage().write(to: root)
            var expectation = PowerCutExpectation(plan)
            disk.begin(atCall: number, lasting: isLasting)
            let refusals = try carryOut(&expectation)
            let call = FailingDisk.end()
            for refusal in refusals {
                if let objection = refusal.objection { print("wrong: call \(number), \(call ?? "none"): \(objection)") }
            }
            if let complaint = complaint(expectation) {
                print("wrong: call \(number), \(call ?? "none"), refused \(refusals.map(\.text)): \(complaint)")
            }
            return refusals.map { "\($0.text) <- \(call.map(Self.brief) ?? "nothing")" }
        }

        /// Returns the names of the call and the file, without random parts.
        private static func brief(_ call: String) -> String {
            let words = call.split(separator: " ")
            let name = words.last?.split(separator: "/").last ?? ""
            let parts = name.split(separator: ".", omittingEmptySubsequences: false).map { $0.count == 32 ? "ID" : $0 }
            return (words.dropLast() + [parts.joined(separator: ".")[...]]).joined(separator: " ")
        }

        private func carryOut(_ expectation: inout PowerCutExpectation) throws -> [Refusal] {
            var refusals: [Refusal] = []
            let session = WorkloadSession(home: home) { KeychainExaminer.keychain(home: home) }
            for (index, operation) in plan.operations.enumerated() {
                try expectation.apply(mark: "begin \(index)")
                do {
                    try session.perform(operation)
                    try expectation.apply(mark: "acknowledged \(index)")
                } catch {
                    try expectation.apply(mark: "failed \(index)")
                    refusals.append(
                        Refusal(operation: operation, status: session.lastStatus, reason: session.lastReason, error: "\(error)"))
                }
            }
            session.close()
            return refusals
        }

        private func complaint(_ expectation: PowerCutExpectation) -> String? {
            expectation.complaint(about: KeychainExaminer(home: home).look(passcodes: []))
        }
    }

    /// An operation that the keychain refused.
    private struct Refusal {
        let operation: WorkloadOperation
        let status: Int32
        let reason: String
        let error: String

        /// Without paths, so that equal refusals can be counted.
        var text: String {
            let words = reason.split(separator: " ").map { $0.contains("/") ? "PATH" : String($0) }.joined(separator: " ")
            return "\(status) \(words)"
        }

        /// Describes a status other than not available, read-only, or I/O error, which would claim something about items.
        var objection: String? {
            let allowed: Set<Int32> = [
                KeychainStatus.notAvailable.rawValue, KeychainStatus.readOnly.rawValue, KeychainStatus.inputOutput.rawValue,
            ]
            guard !allowed.contains(status) else { return nil }
            return "\(operation) was answered with \(status) \(reason) (\(error))"
        }
    }
}
