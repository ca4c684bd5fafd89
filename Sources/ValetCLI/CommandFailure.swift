// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Valet

/// An error of the command: one line about the problem, and one line of advice.
///
/// Neither line contains a secret.
struct CommandFailure: Error {
    let status: ExitStatus
    let problem: String
    let advice: String
    /// Whether the advice is that of failures which have no next step of their own.
    private(set) var isAdviceGeneral = false

    init(_ status: ExitStatus, _ problem: String, advice: String) {
        self.status = status
        self.problem = problem
        self.advice = advice
    }

    func report() {
        StandardError.write("valet: \(problem)\n\(advice)")
    }
}

/// The exit codes of the command.
///
/// `valet help` documents them, so the numbers never change.
enum ExitStatus: Int32 {
    case done = 0
    case notFound = 1
    case usage = 2
    /// The keychain is locked or unavailable, or the output could not be written.
    case unavailable = 3
    case damaged = 4
    case alreadyExists = 5

    // The exit codes of a shell that cannot start a command. `valet run` uses them for the same purpose.
    case notExecutable = 126
    case commandNotFound = 127
}

// MARK: - Failures of items

extension CommandFailure {
    static let noKeychain = CommandFailure(
        .notFound, "no keychain exists yet", advice: "`valet set` creates it with the first secret.")

    /// A command that needs all secrets of a valet, and finds none.
    static func emptyValet(outcome: String) -> CommandFailure {
        CommandFailure(
            .notFound, "this valet has no secrets; \(outcome)",
            advice: "Check --identifier, --accessibility, --group, and --app; `valet apps` shows which ones have secrets.")
    }

    /// A command that needs all secrets of a valet, and finds items that it cannot name.
    static func unnamedItems(_ count: Int, outcome: String) -> CommandFailure {
        CommandFailure(.usage, "\(ItemListing.unnamedItems(count)); \(outcome)", advice: unnamedItemsAdvice)
    }

    static let credentialAdvice = """
        Give the service or container the credential of the keychain, which has exactly 32 bytes. If it is lost, run `valet recovery use` \
        with the recovery key, or give it another credential of 32 bytes: `valet backup restore` then shows how to start over.
        """

    private static let unnamedItemsAdvice =
        "In a program, `migrateObjects(matching:compactMap:)` of the module Valet copies such items under keys of your choice."

    init(_ failure: KeychainFailure) {
        guard !failure.isDamage || failure.remedy != nil else {
            let recovery = failure.subject == .keybag ? ", or run `valet recovery use` with your recovery key" : ""
            self.init(
                .damaged, failure.reason,
                advice: """
                    Nothing was changed. Put back an intact copy of the keychain file, or a snapshot with `valet backup restore-snapshot`\(recovery). \
                    `valet backup restore` shows how to start over from a backup.
                    """)
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
        if failure.subject == .store, failure.cause == .missing {
            self.init(
                .unavailable, failure.reason,
                advice: """
                    Nothing was changed. Put the keychain file back, or a snapshot with `valet backup restore-snapshot`. `valet backup restore` \
                    shows how to start over from a backup.
                    """)
            return
        }
        if case .keptByDaemon = failure.cause {
            self.init(
                .unavailable, "\(failure.reason), and this command works on the file of a keychain",
                advice:
                    "Nothing was changed. `valet daemon status` shows more; root can take the keychain back with `valet daemon release`.")
            return
        }
        if failure.cause == .notKept {
            self.init(
                .unavailable, failure.reason,
                advice:
                    "Nothing was changed. Run the command on the machine that has the keychain, or restore the directory of keychaind there."
            )
            return
        }
        if failure.isCredentialUnusable {
            self.init(.unavailable, failure.reason, advice: "Nothing was changed. \(Self.credentialAdvice)")
            return
        }
        if failure.isDeviceSecretUnusable {
            self.init(
                .unavailable, failure.reason,
                advice: """
                    Nothing was changed. With the recovery key, run `valet recovery use`. Without one, `valet backup restore` shows how to start \
                    over from a backup.
                    """)
            return
        }
        switch failure.status {
        case .itemNotFound:
            self.init(
                .notFound, "no item with this key in this valet",
                advice: "`valet list` with the same options shows the existing keys, and `valet apps` the options of the other valets.")
        case .duplicateItem:
            self.init(.alreadyExists, "an item with this key already exists", advice: "Omit --no-overwrite to replace its value.")
        case .parameter, .noSuchAttribute, .noSuchClass:
            self.init(.usage, failure.reason, advice: "Check the arguments and the environment; see `valet help`.")
        case .decode:
            self.init(.damaged, failure.reason, advice: "Nothing was changed. Run `valet verify` to list the damaged items.")
        case .interactionNotAllowed:
            self.init(.unavailable, failure.reason, advice: "Run `valet unlock`, or pass the passcode with --passcode-fd.")
        case .userCanceled:
            self.init(.unavailable, "the prompt was canceled; nothing was read", advice: "Run the command again to retry.")
        case .missingEntitlement:
            self.init(
                .unavailable, failure.reason,
                advice: "Add --group with the access group, or --app with the program it belongs to.")
        case .inputOutput:
            self.init(
                .unavailable, failure.reason, advice: "Check the disk for errors and free space, then run the command again.")
        default:
            self.init(
                .unavailable, failure.reason,
                advice: "Nothing was changed. Solve the problem, then run the command again; `valet status` shows where the keychain is.")
            isAdviceGeneral = true
        }
    }

    /// Creates the failure for an error of a valet.
    ///
    /// `cause` is the last failure of Keychain Services, which has more detail than the error.
    init(_ error: KeychainError, cause: KeychainFailure?) {
        switch error {
        case .emptyKey:
            self.init(.usage, "the key is empty", advice: "Give a key of at least one character.")
        case .emptyValue:
            self.init(
                .usage, "the secret is empty; nothing was stored",
                advice: "Give at least one byte; use `valet remove` to delete a secret.")
        case .itemNotFound:
            self.init(KeychainFailure(.itemNotFound, "no such item"))
        case .couldNotAccessKeychain where cause?.status == .duplicateItem:
            self.init(
                .alreadyExists, "an item with this key already exists with a different accessibility",
                advice: "Nothing was stored. `valet apps` shows its options; `valet migrate --from-service ... --remove` moves it."
            )
        case .userCancelled, .missingEntitlement, .couldNotAccessKeychain:
            self.init(cause ?? KeychainFailure(.notAvailable, "the keychain could not be accessed"))
        }
    }

    init(_ error: MigrationError, cause: KeychainFailure?) {
        switch error {
        case .keyToMigrateAlreadyExistsInValet:
            self.init(
                .alreadyExists, "a key already exists in the destination valet; nothing was migrated",
                advice: "Run the command with --dry-run to see which keys. Remove them, or choose another destination."
            )
        case .duplicateKeyToMigrate:
            self.init(
                .alreadyExists, "two items have the same key; nothing was migrated",
                advice: "Run the command with --dry-run to see the keys, then remove one of the two items.")
        case .keyToMigrateInvalid:
            self.init(
                .usage, "an item's account is empty or not text, and cannot become a key; nothing was migrated",
                advice: Self.unnamedItemsAdvice)
        case .dataToMigrateInvalid:
            self.init(
                .usage, "an item has an empty value, which a valet cannot store; nothing was migrated",
                advice: "Remove the item first.")
        case .invalidQuery:
            self.init(.usage, "these items cannot be selected for migration", advice: "See `valet help migrate`.")
        case .removalFailed:
            self.init(
                cause
                    ?? KeychainFailure(
                        .notAvailable, "the originals could not be removed, so the migration was undone"))
        }
    }
}

extension KeychainFailure {
    /// Whether something else is in the place of the key file or the credential, or nothing is.
    ///
    /// An owner or a mode that denies access is not meant: the reason then has the command that changes it.
    var isDeviceSecretUnusable: Bool {
        guard subject == .keyFile || subject == .credential else { return false }
        return switch cause {
        case .missing, .symbolicLink, .notRegularFile, .malformed, .otherStore: true
        default: false
        }
    }

    /// Whether the service has no credential of 32 bytes, of this keychain or of a new one.
    ///
    /// Nothing can be stored or restored until it has one.
    var isCredentialUnusable: Bool { subject == .credential && isDeviceSecretUnusable && cause != .otherStore }
}

// MARK: - Failures of authentication

extension CommandFailure {
    static let noBiometry = CommandFailure(
        .unavailable, "biometric authentication is not available here, so such an item could never be read",
        advice: "Use --secure-enclave user-presence or device-passcode.")

    init(_ failure: KeychainFailure, refusal: AuthenticationRefusal) {
        switch refusal {
        case .passcodeNotSet:
            self.init(
                .unavailable, failure.reason,
                advice: "Run `valet passcode set`, or choose another --accessibility and omit --secure-enclave.")
        case .wrongPasscode, .wrongPassword:
            self.init(
                .unavailable, failure.reason,
                advice: "Nothing was read or changed. Run the command again with the correct passcode or password.")
        case .wrongRecoveryKey:
            self.init(
                .unavailable, failure.reason, advice: "Nothing was changed. Run the command again with the correct recovery key.")
        case .notSatisfied:
            self.init(.unavailable, failure.reason, advice: "Nothing was read or changed. Run the command again.")
        case .lockedOut(let seconds):
            self.init(
                .unavailable, failure.reason,
                advice: seconds.map { "Try again in \($0) s." }
                    ?? "Wait a few minutes, then run the command again; `valet status --verbose` shows the TPM's count.")
        case .timedOut:
            self.init(
                .unavailable, failure.reason, advice: "Run the command again, or pass the passcode with --passcode-fd.")
        case .biometryNotAvailable:
            self = .noBiometry
        case .biometryNotEnrolled:
            self.init(.unavailable, failure.reason, advice: "Enroll a finger with `fprintd-enroll`, then run the command again.")
        case .biometryLockedOut:
            self.init(.unavailable, failure.reason, advice: "Run `valet unlock` and enter the passcode, then run the command again.")
        case .biometryNotRecognized:
            self.init(.unavailable, failure.reason, advice: "Run the command again, and touch the reader with an enrolled finger.")
        case .notInteractive:
            self.init(
                .unavailable, failure.reason, advice: "Run the command in a terminal, or pass the passcode with --passcode-fd.")
        case .invalidContext:
            self.init(.unavailable, failure.reason, advice: "Run the command again.")
        }
    }
}

// MARK: - Failures with a remedy

extension CommandFailure {
    init(_ failure: KeychainFailure, remedy: KeychainRemedy) {
        let advice =
            switch remedy {
            case .makeRoomForKeys:
                """
                Nothing was changed. The quota of the kernel keyring is used up: `keyctl show @u` lists its keys. With --passcode-fd a \
                command does not use the keyring.
                """
            case .lockAgain:
                "Solve the problem and run `valet lock` again, and quit the programs that unlocked the keychain."
            case .closeElsewhere:
                "Quit the programs that use the keychain, then run the command again."
            case .repair:
                "Nothing was changed. \(VerifyCommand.repairAdvice)"
            case .acceptContent:
                """
                Nothing was changed. Put the newest copy of the keychain file back, or run `valet repair --accept-content` to see what it \
                contains and to accept it.
                """
            case .saveReadable:
                """
                Nothing was changed. Run `valet verify` to list what is damaged, then `valet repair` to see whether it can be repaired; it asks \
                before it changes anything. Otherwise: \(VerifyCommand.recoveryAdvice)
                """
            case .saveRefused:
                """
                Nothing was changed. Save what is readable with `valet backup create --accept-content`, then restore an intact copy of the file, \
                or move it away and start over from that backup.
                """
            case .restoreCopy:
                """
                Nothing was changed. Put an intact copy of the keychain file back, or start over from a backup; `valet backup create \
                --accept-content` saves what is readable.
                """
            case .correctPolicy:
                """
                Nothing was changed. Correct or remove the passcode policy file, or ask the administrator to. Until then passcodes and backups \
                cannot be made; the present passcode still unlocks.
                """
            case .useNewerVersion:
                "Nothing was changed. Update valet: the file was written by a newer version."
            case .useRecoveryKey:
                "Nothing was changed. Run `valet recovery use` with your recovery key. Without one, restore a backup."
            case .reachTPM:
                """
                Nothing was changed. Check that KEYCHAIN_TPM_TCTI names the TPM and that this user is in the group tss. If the TPM \
                that holds the key of this keychain is lost, run `valet recovery use`.
                """
            case .acceptCost:
                "Nothing was restored. If the backup comes from you, add --accept-cost."
            case .useOneVolume:
                """
                Nothing was created. Set KEYCHAIN_HOME to a directory on the volume, or put XDG_DATA_HOME and XDG_STATE_HOME on volumes \
                that last equally long.
                """
            case .writeElsewhere:
                "The keychain was not changed. Choose a path in an existing, writable directory with free space."
            }
        self.init(failure.isDamage ? .damaged : .unavailable, failure.reason, advice: advice)
    }
}

// MARK: - Failures of passcodes, protectors and recovery keys

extension CommandFailure {
    static let noPasscode = CommandFailure(
        .unavailable, "no passcode is set, so the keychain is never locked", advice: "Set one with `valet passcode set`."
    )

    static let passcodeAlreadySet = CommandFailure(
        .alreadyExists, "a passcode is already set", advice: "Change it with `valet passcode change`.")

    init(passcode failure: KeychainFailure) {
        guard failure.remedy == nil, failure.refusal != .wrongRecoveryKey else {
            self.init(failure)
            return
        }
        if case .lockedOut = failure.refusal {
            self.init(
                .unavailable, failure.reason,
                advice: "Nothing was changed. Wait: the TPM clears failed attempts over time. `valet status --verbose` shows the count.")
            return
        }
        switch failure.status {
        case .authFailed:
            self.init(
                .unavailable, failure.reason, advice: "Nothing was changed. Run the command again with the correct passcode.")
        case .parameter:
            self.init(.usage, failure.reason, advice: "Nothing was changed. Run the command again with a different passcode.")
        case .duplicateItem:
            self.init(.alreadyExists, failure.reason, advice: Self.passcodeAlreadySet.advice)
        case .missingEntitlement:
            self.init(
                .unavailable, failure.reason,
                advice:
                    "Nothing was changed. Root takes the keychain back with `valet daemon release`; then run this command again, and `valet daemon adopt`."
            )
        default:
            self.init(failure)
        }
    }

    init(protector failure: KeychainFailure) {
        switch failure.status {
        case .duplicateItem where failure.subject == .credential:
            self.init(
                .alreadyExists, failure.reason,
                advice: """
                    Nothing was changed. To replace the credential, run `valet protector set keyFile` with the present one, replace it, and run \
                    this command again.
                    """)
        case .duplicateItem:
            self.init(.alreadyExists, failure.reason, advice: "Nothing was changed. `valet status` shows the current protector.")
        case .parameter:
            self.init(
                .usage, failure.reason, advice: "Nothing was changed. Check the recovery key you wrote down and enter it again.")
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
            .alreadyExists, failure.reason, advice: "Nothing was changed. Add --replace to replace the existing recovery key.")
    }
}
