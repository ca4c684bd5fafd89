// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
/// The progress of long work, for a command that shows it.
package enum SyncProgress {
    /// Called with the number of objects that a call has read and created so far, by any thread.
    @TaskLocal package static var report: (@Sendable (Int) -> Void)?
}
#endif
