// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The program at the other end of an Assuan connection.
protocol AssuanServer {
    /// What the program writes, for reading without blocking.
    var output: Int32 { get }

    /// Whether the program has ended by now.
    var isOver: Bool { get }

    /// Writes one line; the program reads each before it is sent another.
    func send(_ line: [UInt8]) throws(PresenceRefusal)

    /// Waits for output or for the end of the program; false at the deadline.
    ///
    /// Throws `.canceled` when the job is to end.
    func wait(until deadline: PromptDeadline) throws(PresenceRefusal) -> Bool
}
