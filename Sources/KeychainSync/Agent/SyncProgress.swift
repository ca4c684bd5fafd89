// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
/// The progress of long work, for a command that shows it.
package struct SyncProgress: Sendable {
    /// What is called with the number of objects that a call has read and created so far, by any thread.
    let report: @Sendable (Int) -> Void

    package init(_ report: @escaping @Sendable (Int) -> Void) { self.report = report }

    // A value of a function type here ends the process: Swift 6.3 passes no type to the asynchronous `withValue` in an optimized build.
    @TaskLocal package static var current: SyncProgress?
}
#endif
