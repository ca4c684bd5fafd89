// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// How a keychain asks the person, and who it says is asking.
package struct Prompting: Sendable {
    package var verifier: any PresenceVerifier
    /// The program: the path of its executable.
    package var requester: String
    package var timeoutSeconds: UInt32
    /// What the windows of contexts are measured with.
    package var time: any MonotonicTime

    package init(
        verifier: any PresenceVerifier, requester: String, timeoutSeconds: UInt32 = PresenceQuestion.standardTimeoutSeconds,
        time: any MonotonicTime = SystemMonotonicTime()
    ) {
        self.verifier = verifier
        self.requester = requester
        self.timeoutSeconds = timeoutSeconds
        self.time = time
    }
}
