// SPDX-License-Identifier: Apache-2.0
import CDiskRecorder
import Glibc

/// A way in which calls below the keychain's directory fail.
enum FailingDisk: String, CaseIterable {
    case inputOutput = "EIO"
    case full = "ENOSPC"
    case readOnly = "EROFS"
    /// Half of the bytes are moved, as POSIX allows.
    case short
    /// What was to be written is lost, and nobody is told: to prove that the loss is found.
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

    /// The calls that it can meet.
    var kinds: UInt32 {
        switch self {
        case .inputOutput: UInt32(DISK_RECORDER_LOOKS | DISK_RECORDER_CHANGES | DISK_RECORDER_FLUSHES | DISK_RECORDER_CLOSES)
        case .full: UInt32(DISK_RECORDER_CHANGES | DISK_RECORDER_FLUSHES)
        case .readOnly: UInt32(DISK_RECORDER_CHANGES)
        case .short, .lying: UInt32(DISK_RECORDER_TRANSFERS)
        }
    }

    /// Lets the call of that number fail, and with `lasting` every one after it.
    func begin(atCall number: UInt64, lasting: Bool) { disk_recorder_fail(kinds, number, errorNumber, lasting) }

    /// From now on all is well; gives what failed first, nil when nothing did.
    static func end() -> String? {
        // The recorder's own text, which stays until the next call; it is copied.
        let call = unsafe String(cString: disk_recorder_failed_call())
        disk_recorder_fail(0, 0, 0, false)
        return call.isEmpty ? nil : call
    }

    static var callCount: UInt64 { disk_recorder_call_count() }
}
