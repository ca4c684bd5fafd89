// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The encoding of a failure: everything that code decides by, and the reason for people.
///
/// Two parts stay where they are. Only keychaind can open its store again, and it asks a person itself, so `requiresReopening` and `needs` mean
/// nothing to a program.
extension MessageWriter {
    package mutating func write(_ failure: KeychainFailure) {
        write(failure.status.rawValue)
        write(failure.reason)
        write(ifPresent: failure.path) { writer, path in writer.write(path) }
        write(ifPresent: failure.subject) { writer, subject in writer.write(subject.code) }
        write(ifPresent: failure.cause) { writer, cause in writer.write(cause) }
        write(failure.isDamage)
        write(ifPresent: failure.remedy) { writer, remedy in writer.write(remedy.code) }
        write(ifPresent: failure.refusal) { writer, refusal in writer.write(refusal) }
    }

    private mutating func write(_ cause: KeychainFailure.Cause) {
        switch cause {
        case .diskFull: write(1 as UInt8)
        case .busy: write(2 as UInt8)
        case .outcomeUnknown: write(3 as UInt8)
        case .otherAccessibility: write(4 as UInt8)
        case .newerVersion: write(5 as UInt8)
        case .missing: write(6 as UInt8)
        case .empty: write(7 as UInt8)
        case .symbolicLink: write(8 as UInt8)
        case .notRegularFile: write(9 as UInt8)
        case .hardLinks: write(10 as UInt8)
        case .mountPoint: write(11 as UInt8)
        case .wrongOwner: write(12 as UInt8)
        case .accessibleToOthers: write(13 as UInt8)
        case .unknownFileSystem: write(14 as UInt8)
        case .foreignFile: write(15 as UInt8)
        case .otherStore: write(16 as UInt8)
        case .unsupportedVersion: write(17 as UInt8)
        case .malformed: write(18 as UInt8)
        case .damaged: write(19 as UInt8)
        case .costRefused: write(20 as UInt8)
        case .isKeychainFile: write(21 as UInt8)
        case .incompleteBackup: write(22 as UInt8)
        case .mistyped: write(23 as UInt8)
        case .locked: write(24 as UInt8)
        case .notKept: write(25 as UInt8)
        case .quota: write(26 as UInt8)
        case .networkFileSystem(let name):
            write(128 as UInt8)
            write(name)
        case .temporaryFileSystem(let name):
            write(129 as UInt8)
            write(name)
        case .environmentVariable(let name):
            write(130 as UInt8)
            write(name)
        case .invalidEntry(let name):
            write(131 as UInt8)
            write(name)
        case .unexpectedState(let problem):
            write(132 as UInt8)
            write(problem)
        case .timedOut(let milliseconds):
            write(133 as UInt8)
            write(UInt64(clamping: milliseconds))
        case .system(let number):
            write(134 as UInt8)
            write(number)
        case .sqlite(let code):
            write(135 as UInt8)
            write(code)
        case .keptByDaemon(let store):
            write(136 as UInt8)
            write(store)
        }
    }

    private mutating func write(_ problem: StateProblem) {
        switch problem {
        case .unauthentic: write(1 as UInt8)
        case .rolledBack(let count):
            write(2 as UInt8)
            write(count)
        case .superseded: write(3 as UInt8)
        case .logRemoved(let count):
            write(4 as UInt8)
            write(count)
        case .diverged: write(5 as UInt8)
        case .rowsChanged(let count, let expectedCount):
            write(6 as UInt8)
            write(count)
            write(expectedCount)
        case .mixed: write(7 as UInt8)
        case .keybagReplaced: write(8 as UInt8)
        case .keybagGenerationAltered: write(9 as UInt8)
        case .schemaAltered: write(10 as UInt8)
        }
    }

    private mutating func write(_ refusal: AuthenticationRefusal) {
        switch refusal {
        case .passcodeNotSet: write(1 as UInt8)
        case .wrongPasscode: write(2 as UInt8)
        case .wrongPassword: write(3 as UInt8)
        case .wrongRecoveryKey: write(4 as UInt8)
        case .notSatisfied: write(5 as UInt8)
        case .lockedOut(let seconds):
            write(6 as UInt8)
            write(ifPresent: seconds) { writer, seconds in writer.write(seconds) }
        case .timedOut: write(7 as UInt8)
        case .biometryNotAvailable: write(8 as UInt8)
        case .notInteractive: write(9 as UInt8)
        case .invalidContext: write(10 as UInt8)
        case .biometryNotEnrolled: write(11 as UInt8)
        case .biometryLockedOut: write(12 as UInt8)
        case .biometryNotRecognized: write(13 as UInt8)
        }
    }
}

extension MessageReader {
    package mutating func readFailure() throws(MalformedMessage) -> KeychainFailure {
        let status = KeychainStatus(rawValue: try readInt32())
        let reason = try readText()
        let path = try readIfPresent { reader throws(MalformedMessage) in try reader.readText() }
        let subject = try readIfPresent { reader throws(MalformedMessage) in
            try reader.required(KeychainFailure.Subject(code: try reader.readByte()))
        }
        let cause = try readIfPresent { reader throws(MalformedMessage) in try reader.readCause() }
        let isDamage = try readFlag()
        let remedy = try readIfPresent { reader throws(MalformedMessage) in
            try reader.required(KeychainRemedy(code: try reader.readByte()))
        }
        let refusal = try readIfPresent { reader throws(MalformedMessage) in try reader.readRefusal() }
        // Success is not a failure.
        guard status != .success else { throw MalformedMessage() }
        return KeychainFailure(
            status, reason, path: path, subject: subject, cause: cause, isDamage: isDamage, remedy: remedy, refusal: refusal)
    }

    private mutating func readCause() throws(MalformedMessage) -> KeychainFailure.Cause {
        switch try readByte() {
        case 1: return .diskFull
        case 2: return .busy
        case 3: return .outcomeUnknown
        case 4: return .otherAccessibility
        case 5: return .newerVersion
        case 6: return .missing
        case 7: return .empty
        case 8: return .symbolicLink
        case 9: return .notRegularFile
        case 10: return .hardLinks
        case 11: return .mountPoint
        case 12: return .wrongOwner
        case 13: return .accessibleToOthers
        case 14: return .unknownFileSystem
        case 15: return .foreignFile
        case 16: return .otherStore
        case 17: return .unsupportedVersion
        case 18: return .malformed
        case 19: return .damaged
        case 20: return .costRefused
        case 21: return .isKeychainFile
        case 22: return .incompleteBackup
        case 23: return .mistyped
        case 24: return .locked
        case 25: return .notKept
        case 26: return .quota
        case 128: return .networkFileSystem(name: try readText())
        case 129: return .temporaryFileSystem(name: try readText())
        case 130: return .environmentVariable(try readText())
        case 131: return .invalidEntry(try readText())
        case 132: return .unexpectedState(try readProblem())
        case 133: return .timedOut(milliseconds: try required(Int(exactly: try readUInt64())))
        case 134: return .system(errno: try readInt32())
        case 135: return .sqlite(code: try readInt32())
        case 136: return .keptByDaemon(try readIdentifier())
        default: throw MalformedMessage()
        }
    }

    private mutating func readProblem() throws(MalformedMessage) -> StateProblem {
        switch try readByte() {
        case 1: return .unauthentic
        case 2: return .rolledBack(missingChangeCount: try readUInt64())
        case 3: return .superseded
        case 4: return .logRemoved(missingChangeCount: try readUInt64())
        case 5: return .diverged
        case 6: return .rowsChanged(count: try readUInt64(), expectedCount: try readUInt64())
        case 7: return .mixed
        case 8: return .keybagReplaced
        case 9: return .keybagGenerationAltered
        case 10: return .schemaAltered
        default: throw MalformedMessage()
        }
    }

    private mutating func readRefusal() throws(MalformedMessage) -> AuthenticationRefusal {
        switch try readByte() {
        case 1: return .passcodeNotSet
        case 2: return .wrongPasscode
        case 3: return .wrongPassword
        case 4: return .wrongRecoveryKey
        case 5: return .notSatisfied
        case 6: return .lockedOut(seconds: try readIfPresent { reader throws(MalformedMessage) in try reader.readUInt32() })
        case 7: return .timedOut
        case 8: return .biometryNotAvailable
        case 9: return .notInteractive
        case 10: return .invalidContext
        case 11: return .biometryNotEnrolled
        case 12: return .biometryLockedOut
        case 13: return .biometryNotRecognized
        default: throw MalformedMessage()
        }
    }
}

extension KeychainFailure.Subject {
    fileprivate var code: UInt8 {
        switch self {
        case .store: 1
        case .keybag: 2
        case .keyFile: 3
        case .credential: 4
        case .policy: 5
        case .backup: 6
        case .snapshot: 7
        case .entitlements: 8
        case .tpm: 9
        }
    }

    fileprivate init?(code: UInt8) {
        guard let match = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = match
    }
}

extension KeychainRemedy {
    fileprivate var code: UInt8 {
        switch self {
        case .makeRoomForKeys: 1
        case .lockAgain: 2
        case .correctPolicy: 3
        case .useNewerVersion: 4
        case .writeElsewhere: 5
        case .acceptCost: 6
        case .closeElsewhere: 7
        case .repair: 8
        case .acceptContent: 9
        case .saveReadable: 10
        case .saveRefused: 11
        case .restoreCopy: 12
        case .useRecoveryKey: 13
        case .reachTPM: 14
        case .useOneVolume: 15
        }
    }

    fileprivate init?(code: UInt8) {
        guard let match = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = match
    }
}
