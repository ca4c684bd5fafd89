// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

/// The violations that a check of a contract has found, one sentence each.
package struct ContractFindings {
    package private(set) var violations: [String] = []

    /// Runs `check` and returns the violations it found; a failure that it throws is one of them.
    static func violations(
        _ check: (inout ContractFindings) throws(KeychainFailure) -> Void
    ) -> [String] {
        var findings = ContractFindings()
        do throws(KeychainFailure) {
            try check(&findings)
        } catch {
            findings.report("unexpected failure: \(error)")
        }
        return findings.violations
    }

    mutating func report(_ violation: String) { violations.append(violation) }

    /// Reports `violation` unless `isKept`.
    mutating func expect(_ isKept: Bool, _ violation: @autoclosure () -> String) {
        if !isKept { report(violation()) }
    }

    /// Reports a violation unless `body` fails with `status`; `operation` names the body in the report.
    mutating func expectFailure(
        _ status: KeychainStatus, _ operation: String, _ body: () throws(KeychainFailure) -> Void
    ) {
        do throws(KeychainFailure) {
            try body()
            report("\(operation) succeeded")
        } catch {
            if error.status != status { report("\(operation) failed with \(error.status.rawValue), not \(status.rawValue)") }
        }
    }
}
#endif
