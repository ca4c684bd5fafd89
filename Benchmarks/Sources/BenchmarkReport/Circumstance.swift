// SPDX-License-Identifier: Apache-2.0

/// What goes on around an operation.
package enum Circumstance: String, Codable, CaseIterable, Sendable {
    /// In a process that is already there.
    case alone
    /// In a process that is already there, while another one reads all the time.
    case besideReader
    /// In a process that is already there, while another one writes all the time.
    case besideWriter
    /// Start and end of a process included.
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
