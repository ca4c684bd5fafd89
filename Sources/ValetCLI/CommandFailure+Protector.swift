// SPDX-License-Identifier: Apache-2.0
import KeychainCore

/// What went wrong with a protector or a recovery key, and what to do then.
extension CommandFailure {
    init(protector failure: KeychainFailure) {
        switch failure.status {
        case .duplicateItem:
            self.init(.alreadyThere, failure.reason, advice: "Nothing was changed. `valet status` tells what protects the keychain.")
        case .parameter:
            self.init(.usage, failure.reason, advice: "Nothing was changed. Look at what is written down, and type it again.")
        default:
            self.init(passcode: failure)
        }
    }

    init(recovery failure: KeychainFailure) {
        guard failure.status == .duplicateItem else {
            self.init(protector: failure)
            return
        }
        self.init(
            .alreadyThere, failure.reason, advice: "Nothing was changed. With --replace the new one takes its place.")
    }
}

extension CommandSession {
    /// Runs a call about the keychain's protector.
    func performOnProtector<Result>(
        _ body: (any KeychainProtecting) throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body(keychain)
        } catch {
            throw CommandFailure(protector: error)
        }
    }
}
