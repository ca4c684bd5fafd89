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

/// Carries out a plan on the keychain of the environment, and records all changes of files.
enum RecordedWorkload {
    /// ROOT LOG SEED SIZE local|synchronized FIRST [FAULT ARGUMENT]: records.
    ///
    /// Faults: `synchronous-normal`, `lost-record`, `no-flush ENDING`, `failing-flush OPERATION FILE NUMBER`, `ending-flush OPERATION FILE NUMBER`,
    /// `failing-flushes ENDING`, `ending-link ENDING`. `bystander` is none: the same as `ending-flush` with no flush that fails.
    ///
    /// FIRST is the operation to begin with. With `ending-flush` the process ends without closing anything as soon as the failure was
    /// reported, with `ending-link` as soon as the link was made. It prints `next INDEX`: another process is to continue there.
    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 6, let seed = UInt64(arguments[2]), let size = WorkloadPlan.Size(rawValue: arguments[3]),
            let first = Int(arguments[5]), let home = ProcessInfo.processInfo.environment["KEYCHAIN_HOME"]
        else { throw BadArguments() }
        let fault = arguments.dropFirst(6)
        // Never freed: the recorder uses the text until the process ends.
        if fault.first == "no-flush", let ending = fault.last { unsafe disk_recorder_ignore_flushes(strdup(ending)) }
        // Likewise.
        if fault.first == "failing-flushes", let ending = fault.last { unsafe disk_recorder_fail_flushes(strdup(ending)) }
        if fault.first == "ending-link", let ending = fault.last {
            sayNext(first)
            // Likewise.
            unsafe disk_recorder_end_at_link(strdup(ending))
        }
        guard unsafe disk_recorder_start(arguments[0], arguments[1]) == 0 else { throw BadArguments() }
        let failingFlush = FlushPoint(arguments: fault.dropFirst())
        let synchronizes = arguments[4] == "synchronized"
        let plan = WorkloadPlan(seed: seed, size: size, synchronizes: synchronizes)
        let session = WorkloadSession(home: home, synchronizes: synchronizes) {
            KeychainExaminer.keychain(home: home) { configuration in
                // A thread of its own then copies the -wal file into the database.
                if synchronizes { configuration.storeOptions.largeLogFrameCount = 250 }
                if fault.first == "synchronous-normal" { configuration.storeOptions.synchronous = .normal }
            }
        }
        if first > 0 { session.unlock(trying: plan.passcodes) }
        // While another connection is open, SQLite does not empty the -wal file when the failed connection is closed.
        let bystander = KeychainExaminer.keychain(home: home)
        for index in plan.operations.indices.dropFirst(first) {
            mark("begin \(index)")
            if let failingFlush, failingFlush.operation == index {
                // The pattern is copied before it returns.
                unsafe disk_recorder_fail_flush(failingFlush.file, UInt64(failingFlush.occurrence))
            }
            do {
                try session.perform(plan.operations[index])
                if fault.first == "lost-record", index == plan.operations.count - 1 { try session.loseRecord() }
                mark("acknowledged \(index)")
                if fault.first == "ending-flush" || fault.first == "bystander" { _ = try bystander.sessionStatus() }
            } catch {
                mark("failed \(index) \(session.lastStatus) \(error)")
                // Later operations may be refused too, such as adding an item that requires the passcode that was not set.
                guard fault.first != "ending-flush" else {
                    sayNext(index + 1)
                    _exit(0)
                }
                guard fault.first == "failing-flush" || fault.first == "failing-flushes" || first > 0 else { throw error }
            }
        }
        session.close()
    }

    private static func sayNext(_ index: Int) {
        print("next \(index)")
        // All of the process's streams.
        fflush(nil)
    }

    private static func mark(_ text: String) {
        // Copied before it returns.
        unsafe disk_recorder_mark(text)
    }
}
