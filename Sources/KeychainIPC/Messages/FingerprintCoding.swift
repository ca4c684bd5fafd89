// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// What keychaind asks the program that verifies fingers for.
///
/// The program is told no more than the user, and decides nothing but whether a finger matches.
package struct FingerprintTask: Sendable {
    package enum Kind: UInt8, Sendable {
        /// Look for the reader and the enrolled fingers.
        case inspect = 1
        /// Verify a finger until it matches, or as often as `attemptCount` says.
        case verify = 2
        /// End the verification of the same nonce.
        case cancel = 3
    }

    /// Chosen at random; the answer repeats it.
    package let nonce: Identifier128
    package let kind: Kind
    package let user: UInt32
    package let attemptCount: UInt8
    package let timeoutSeconds: UInt32

    package init(nonce: Identifier128, kind: Kind, user: UInt32, attemptCount: UInt8 = 0, timeoutSeconds: UInt32 = 0) {
        self.nonce = nonce
        self.kind = kind
        self.user = user
        self.attemptCount = attemptCount
        self.timeoutSeconds = timeoutSeconds
    }
}

/// What the program that verifies fingers has found.
package struct FingerprintAnswer: Sendable {
    package enum Result: UInt8, CaseIterable, Sendable {
        /// A finger has matched, or can be verified.
        case success = 1
        case noMatch = 2
        case notEnrolled = 3
        case noReader = 4
        /// fprintd does not run, or permits nothing.
        case noService = 5
        /// Another program uses the reader.
        case busy = 6
        /// The user has no session in front of this machine.
        case noLocalSession = 7
        /// The reader was unplugged.
        case disconnected = 8
        case timedOut = 9
        case canceled = 10
        case failed = 11
    }

    package let nonce: Identifier128
    package let result: Result
    /// How many fingers have not matched.
    package let mismatchCount: UInt8
    package let reader: String
    package let fingers: [String]

    package init(nonce: Identifier128, result: Result, mismatchCount: UInt8 = 0, reader: String = "", fingers: [String] = []) {
        self.nonce = nonce
        self.result = result
        self.mismatchCount = mismatchCount
        self.reader = reader
        self.fingers = fingers
    }
}

extension MessageWriter {
    mutating func write(_ task: FingerprintTask) {
        write(task.nonce)
        write(task.kind.rawValue)
        write(task.user)
        write(task.attemptCount)
        write(task.timeoutSeconds)
    }

    mutating func write(_ answer: FingerprintAnswer) {
        write(answer.nonce)
        write(answer.result.rawValue)
        write(answer.mismatchCount)
        write(answer.reader)
        write(UInt32(answer.fingers.count))
        for finger in answer.fingers { write(finger) }
    }
}

extension MessageReader {
    mutating func readFingerprintTask() throws(MalformedMessage) -> FingerprintTask {
        FingerprintTask(
            nonce: try readIdentifier(), kind: try required(FingerprintTask.Kind(rawValue: try readByte())), user: try readUInt32(),
            attemptCount: try readByte(), timeoutSeconds: try readUInt32())
    }

    mutating func readFingerprintAnswer() throws(MalformedMessage) -> FingerprintAnswer {
        FingerprintAnswer(
            nonce: try readIdentifier(), result: try required(FingerprintAnswer.Result(rawValue: try readByte())),
            mismatchCount: try readByte(), reader: try readText(),
            fingers: try readList { reader throws(MalformedMessage) in try reader.readText() })
    }
}
