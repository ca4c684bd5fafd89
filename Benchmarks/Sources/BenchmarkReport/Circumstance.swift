// SPDX-License-Identifier: Apache-2.0

/// The circumstances of a measured operation.
package enum Circumstance: String, Codable, CaseIterable, Sendable {
    /// In a running process.
    case alone
    /// In a running process, while another one continuously reads.
    case besideReader
    /// In a running process, while another one continuously writes.
    case besideWriter
    /// In a new process, including its start and exit.
    case wholeProcess

    package var title: String {
        switch self {
        case .alone: ""
        case .besideReader: "beside a reading process"
        case .besideWriter: "beside a writing process"
        case .wholeProcess: "whole process"
        }
    }
}
