// SPDX-License-Identifier: Apache-2.0

/// Why the command did not do what was asked: one line what is wrong, one line what to do.
///
/// Neither holds a secret.
struct CommandFailure: Error {
    let status: ExitStatus
    let problem: String
    let advice: String

    init(_ status: ExitStatus, _ problem: String, advice: String) {
        self.status = status
        self.problem = problem
        self.advice = advice
    }

    func report() {
        StandardError.write("valet: \(problem)\n\(advice)")
    }
}
