// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Valet

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
