// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Valet

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

/// What the command answers to whoever started it.
///
/// Documented in `valet help`: never renumber.
enum ExitStatus: Int32 {
    case done = 0
    case notFound = 1
    case usage = 2
    /// Locked or unavailable: the keychain could not be asked, or what it answered could not be written out.
    case unavailable = 3
    case damaged = 4
    case alreadyThere = 5

    // What a shell answers when it cannot start a command; `valet run` stands in its place.
    case notExecutable = 126
    case commandNotFound = 127
}

/// From what the keychain answered to what the person can do next.
extension CommandFailure {
    init(_ failure: KeychainFailure) {
        guard !failure.isDamage || failure.remedy == .repair else {
            self.init(.damaged, failure.reason, advice: "Put back a backup of the keychain and its key file; nothing is replaced unasked.")
            return
        }
        if let remedy = failure.remedy {
            self.init(failure, remedy: remedy)
            return
        }
        if let refusal = failure.refusal {
            self.init(failure, refusal: refusal)
            return
        }
        switch failure.status {
        case .itemNotFound:
            self.init(.notFound, "there is no such item in this valet", advice: "`valet list` shows the keys that are there.")
        case .duplicateItem:
            self.init(.alreadyThere, "an item with this key is already there", advice: "Leave out --no-overwrite to replace its value.")
        case .parameter, .noSuchAttribute, .noSuchClass:
            self.init(.usage, failure.reason, advice: "See `valet help`.")
        case .decode:
            self.init(.damaged, failure.reason, advice: "Nothing was changed. `valet verify` lists everything that is damaged.")
        case .authFailed:
            // Of the calls that store and read items, only one that needs a passcode where none is set fails so without a refusal.
            self.init(failure, refusal: .passcodeNotSet)
        case .interactionNotAllowed:
            self.init(.unavailable, failure.reason, advice: "Unlock it with `valet unlock`, or give the passcode with --passcode-fd.")
        case .userCanceled:
            self.init(.unavailable, "the question was cancelled, and nothing was read", advice: "Run the command again to be asked anew.")
        case .missingEntitlement:
            self.init(.unavailable, failure.reason, advice: "Name the access group with --group, or its program with --app.")
        case .inputOutput:
            self.init(.unavailable, failure.reason, advice: "Check that the disk is sound and not full, then run the command again.")
        default:
            self.init(.unavailable, failure.reason, advice: "Nothing was changed. `valet status` tells where the keychain is.")
        }
    }

    /// What a valet threw, with what the keychain below it said last: a valet's errors tell little.
    init(_ error: KeychainError, because failure: KeychainFailure?) {
        switch error {
        case .emptyKey:
            self.init(.usage, "the key is empty", advice: "Give a key of at least one character.")
        case .emptyValue:
            self.init(
                .usage, "the secret is empty, and nothing was stored", advice: "Give a secret of at least one byte, or use `valet remove`.")
        case .itemNotFound:
            self.init(KeychainFailure(.itemNotFound, "no such item"))
        case .couldNotAccessKeychain where failure?.status == .duplicateItem:
            self.init(
                .alreadyThere, "an item with this key and another accessibility is already there",
                advice: "Choose its --accessibility, or move it here with `valet migrate`."
            )
        case .userCancelled, .missingEntitlement, .couldNotAccessKeychain:
            self.init(failure ?? KeychainFailure(.notAvailable, "the keychain could not be used"))
        }
    }

    init(_ error: MigrationError, because failure: KeychainFailure?) {
        switch error {
        case .keyToMigrateAlreadyExistsInValet:
            self.init(
                .alreadyThere, "a key is already there in this valet; nothing was moved",
                advice: "Remove it, or choose another valet. `valet migrate --dry-run` with the same options shows which."
            )
        case .duplicateKeyToMigrate:
            self.init(.alreadyThere, "two items have the same key; nothing was moved", advice: "Remove one of them first.")
        case .keyToMigrateInvalid:
            self.init(
                .usage, "an item has no account that is text; nothing was moved",
                advice: "Remove it first; `valet verify` tells if it is damaged.")
        case .dataToMigrateInvalid:
            self.init(.usage, "an item has an empty value; nothing was moved", advice: "Remove it first: a valet holds no empty values.")
        case .invalidQuery:
            self.init(.usage, "these items cannot be searched for", advice: "See `valet help migrate`.")
        case .removalFailed:
            self.init(failure ?? KeychainFailure(.notAvailable, "the originals could not be removed; everything is as it was before"))
        }
    }
}

/// What to do when a person could not be asked, or could not show to be the right one.
extension CommandFailure {
    static let noBiometry = CommandFailure(
        .unavailable, "nothing here recognises a finger or a face, so such an item could never be released",
        advice: "Use --secure-enclave user-presence or device-passcode.")

    init(_ failure: KeychainFailure, refusal: AuthenticationRefusal) {
        switch refusal {
        case .passcodeNotSet:
            self.init(
                .unavailable, failure.reason,
                advice: """
                    Such items need one: set it with `valet passcode set`, or choose another --accessibility, without --secure-enclave.
                    """)
        case .wrong:
            self.init(.unavailable, failure.reason, advice: "Nothing was read or changed. Run the command again with the right one.")
        case .lockedOut(let seconds):
            self.init(
                .unavailable, failure.reason,
                advice: seconds.map { "Try again in \($0) s." } ?? "Try again later.")
        case .timedOut:
            self.init(
                .unavailable, failure.reason, advice: "Run the command again to be asked anew, or give the passcode with --passcode-fd.")
        case .biometryNotAvailable:
            self = .noBiometry
        case .notInteractive:
            self.init(
                .unavailable, failure.reason, advice: "Run the command on a terminal, or give the passcode with --passcode-fd.")
        case .invalidContext:
            self.init(.unavailable, failure.reason, advice: "Run the command again.")
        }
    }
}

/// Advice for failures that say themselves what helps.
extension CommandFailure {
    init(_ failure: KeychainFailure, remedy: KeychainRemedy) {
        let advice =
            switch remedy {
            case .makeRoomForKeys:
                "Nothing was changed. `keyctl show @u` lists the keys that take up room; with --passcode-fd a command needs none."
            case .lockAgain:
                "Run `valet lock` again once the keychain can be written, or end the programs that have unlocked it."
            case .closeElsewhere:
                "End the programs that use the keychain, then run the command again."
            case .repair:
                "`valet repair` tells whether it can be mended: nothing is changed unasked. Else put back a backup."
            case .correctPolicy:
                "Nothing was changed. Correct the file, or ask the administrator to."
            case .useNewerVersion:
                "Nothing was changed. Use a newer valet."
            case .useRecoveryKey:
                "Nothing was changed. `valet recovery use` restores access with the recovery key; without one, only a backup helps."
            case .reachTPM:
                "Nothing was changed. See that KEYCHAIN_TPM_TCTI names the TPM and that this user may use it (group tss); if it is lost, use `valet recovery use`."
            case .writeElsewhere:
                "The keychain is as it was. Choose another place for the file, or make room there."
            }
        self.init(failure.isDamage ? .damaged : .unavailable, failure.reason, advice: advice)
    }
}

/// What went wrong with a passcode, and what to do then.
extension CommandFailure {
    static let noPasscode = CommandFailure(
        .unavailable, "no passcode is set, so the keychain is never locked", advice: "Set one with `valet passcode set`."
    )

    init(passcode failure: KeychainFailure) {
        guard failure.remedy == nil else {
            self.init(failure)
            return
        }
        if case .lockedOut = failure.refusal {
            self.init(
                .unavailable, failure.reason,
                advice:
                    "Nothing was changed. The TPM forgives wrong passcodes with time; `valet status --verbose` shows how many it has counted."
            )
            return
        }
        switch failure.status {
        case .authFailed:
            self.init(.unavailable, failure.reason, advice: "Nothing was changed. Run the command again with the right one.")
        case .parameter:
            self.init(.usage, failure.reason, advice: "Nothing was changed. Run the command again with another one.")
        case .duplicateItem:
            self.init(.alreadyThere, failure.reason, advice: "Change it with `valet passcode change`.")
        default:
            self.init(failure)
        }
    }
}

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
    func performProtectorCall<Result>(
        _ body: (any ProtectorManaging) throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body(keychain)
        } catch {
            throw CommandFailure(protector: error)
        }
    }
}
