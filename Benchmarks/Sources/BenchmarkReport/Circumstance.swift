// SPDX-License-Identifier: Apache-2.0

/// The circumstances of a measured operation.
package enum Circumstance: String, Codable, CaseIterable, Sendable {
    /// In a running process.
    case alone
    /// In a running process, while another one continuously reads.
    case besideReader
    /// In a running process, while another one continuously writes.
    case besideWriter
    /// In turns with the other forms of the same call.
    case besideOtherForms
    /// With a typed key.
    case typedKey
    /// The asynchronous form, in one task.
    case asynchronous
    /// Until another process is told of the change.
    case untilNoticed
    /// In a new process, including its start and exit.
    case wholeProcess

    package var title: String {
        switch self {
        case .alone: ""
        case .besideReader: "beside a reading process"
        case .besideWriter: "beside a writing process"
        case .besideOtherForms: "in turns with the next"
        case .typedKey: "with a typed key"
        case .asynchronous: "asynchronous form"
        case .untilNoticed: "until another process is told"
        case .wholeProcess: "whole process"
        }
    }
}
