// SPDX-License-Identifier: Apache-2.0
import KeychainCore

extension KeychainFailure {
    /// The failure in one line of output: the status, the structured parts as `NAME=VALUE`, and the reason for a person.
    ///
    /// Tests compare only the structured parts.
    var line: String {
        var parts = ["\(status.rawValue)"]
        if let path { parts.append("path=\(path)") }
        if let cause { parts.append("cause=\(cause)") }
        if let remedy { parts.append("remedy=\(remedy)") }
        switch refusal {
        case .none: break
        case .lockedOut(let seconds): parts.append("refusal=lockedOut(\(seconds.map { "\($0)" } ?? "unknown"))")
        case .some(let refusal): parts.append("refusal=\(refusal)")
        }
        return parts.joined(separator: " ") + " " + reason
    }
}
