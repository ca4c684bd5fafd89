// SPDX-License-Identifier: Apache-2.0
import CDiskRecorder
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import PowerCutSimulation
import Valet

struct BadArguments: Error {}

/// Carries out a plan on the keychain of the environment.
enum RecordedWorkload {
    /// ROOT LOG POLICY SEED SIZE [synchronous-normal | no-flush ENDING | failing-flush NUMBER]: records one run.
    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 5, let seed = UInt64(arguments[3]), let size = WorkloadPlan.Size(rawValue: arguments[4]),
            let home = ProcessInfo.processInfo.environment["KEYCHAIN_HOME"]
        else { throw BadArguments() }
        let fault = arguments.dropFirst(5)
        // Never freed: flushes are compared with it until the end.
        if fault.first == "no-flush", let ending = fault.last { unsafe disk_recorder_ignore_flushes(strdup(ending)) }
        guard unsafe disk_recorder_start(arguments[0], arguments[1]) == 0 else { throw BadArguments() }
        if fault.first == "failing-flush", let number = fault.last.flatMap({ UInt64($0) }) {
            disk_recorder_fail(UInt32(DISK_RECORDER_FLUSHES), number, EIO, false)
        }
        let session = WorkloadSession {
            KeychainExaminer.keychain(home: home, policyPath: arguments[2]) { configuration in
                if fault.first == "synchronous-normal" { configuration.storeOptions.synchronous = .normal }
            }
        }
        for (index, operation) in WorkloadPlan(seed: seed, size: size).operations.enumerated() {
            mark("begin \(index)")
            do {
                try session.perform(operation)
                mark("acknowledged \(index)")
            } catch {
                guard fault.first == "failing-flush" else { throw error }
                mark("failed \(index) \(session.lastStatus) \(error)")
            }
        }
        session.close()
    }

    private static func mark(_ text: String) {
        // Copied before it returns.
        unsafe disk_recorder_mark(text)
    }
}
