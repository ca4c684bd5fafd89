// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore
package import KeychainStore
internal import KeychainSystem

/// Where a keychain is and how it behaves.
///
/// Parsed once from the environment.
package struct KeychainConfiguration: Sendable {
    /// The database file, an absolute path.
    package var storePath: String
    /// The directory of key files, an absolute path.
    package var keyDirectory: String
    /// The protector of a store that has yet to be made; nil: a systemd credential if there is one, else a key file.
    package var protectorForNewStore: DeviceProtectorKind?
    /// Where systemd put the service's credentials, if it did.
    package var credentialsDirectory: String?
    /// Where the TPM is, as tpm2-tss names it; used by a keychain whose protector it is, and nothing else is ever probed.
    package var tpmTCTI = KeychainConfiguration.standardTPMTCTI
    /// A chip for tests; nil: the one at `tpmTCTI`.
    package var sealingDevice: (any SealingDevice)?
    /// Where the keys of an unlocked keychain are kept.
    ///
    /// The environment has no say in it.
    package var keyHolder = KeyHolderSelection.automatic
    /// The administrator's rules for passcodes.
    ///
    /// The environment has no say in it: a user could point it elsewhere.
    package var policyPath = PasscodePolicy.systemPath
    /// Whether the policy may be the user's own file: for tests.
    package var acceptsUserOwnedPolicy = false
    /// Which program asks the person.
    package var pinentry = PinentrySelection.automatic
    /// Where the person is, for that program.
    package var promptEnvironment = PromptEnvironment()
    /// Who asks the person; nil: what `pinentry` and `promptEnvironment` say.
    package var presenceVerifier: (any PresenceVerifier)?
    /// How long a person may take to answer.
    package var promptTimeoutSeconds = PresenceQuestion.standardTimeoutSeconds
    /// How the store is opened.
    ///
    /// The environment has no say in it; tests do.
    package var storeOptions = StoreOptions()

    /// Where the kernel shares the machine's TPM among programs.
    package static let standardTPMTCTI = "device:/dev/tpmrm0"

    package init(
        storePath: String, keyDirectory: String, protectorForNewStore: DeviceProtectorKind? = nil,
        credentialsDirectory: String? = nil
    ) {
        self.storePath = Self.plain(storePath)
        self.keyDirectory = Self.plain(keyDirectory)
        self.protectorForNewStore = protectorForNewStore
        self.credentialsDirectory = credentialsDirectory
    }

    /// A keychain wholly below one directory, as `KEYCHAIN_HOME` says it.
    package init(home: String) {
        self.init(storePath: home + "/keychain.db", keyDirectory: home + "/keys")
    }

    /// The configuration that this process's environment gives.
    ///
    /// Throws as `init(environment:)`.
    package static func fromEnvironment() throws(KeychainFailure) -> KeychainConfiguration {
        try KeychainConfiguration(environment: ProcessInfo.processInfo.environment)
    }

    /// Reads `KEYCHAIN_HOME`, else `XDG_DATA_HOME` and `XDG_STATE_HOME`, else `HOME`; `KEYCHAIN_PROTECTOR`; `KEYCHAIN_TPM_TCTI`;
    /// `KEYCHAIN_PINENTRY` and what a pinentry program is told of the caller; and `CREDENTIALS_DIRECTORY`.
    ///
    /// Source: XDG Base Directory Specification (a relative path is to be ignored); systemd.exec(5), "Credentials".
    /// Throws `.notAvailable` when no place is named, `.parameter` for a value that is not understood.
    package init(environment: [String: String]) throws(KeychainFailure) {
        if let home = environment["KEYCHAIN_HOME"] {
            guard home.hasPrefix("/") else {
                throw KeychainFailure(.parameter, "KEYCHAIN_HOME must be an absolute path")
            }
            self.init(home: home)
        } else {
            let data = try Self.baseDirectory("XDG_DATA_HOME", below: ".local/share", environment)
            let state = try Self.baseDirectory("XDG_STATE_HOME", below: ".local/state", environment)
            self.init(storePath: data + "/keychain/keychain.db", keyDirectory: state + "/keychain")
        }
        if let name = environment["KEYCHAIN_PROTECTOR"], !name.isEmpty {
            guard let kind = DeviceProtectorKind.allCases.first(where: { $0.name == name }) else {
                let known = DeviceProtectorKind.allCases.map(\.name).joined(separator: ", ")
                throw KeychainFailure(.parameter, "KEYCHAIN_PROTECTOR is none of: \(known)")
            }
            protectorForNewStore = kind
        }
        if let tcti = environment["KEYCHAIN_TPM_TCTI"], !tcti.isEmpty { tpmTCTI = tcti }
        pinentry = try PinentrySelection(variable: environment["KEYCHAIN_PINENTRY"])
        promptEnvironment = PromptEnvironment(environment)
        credentialsDirectory = environment["CREDENTIALS_DIRECTORY"].flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// The path without empty and `.` components: many people end the name of a directory with a slash.
    private static func plain(_ path: String) -> String {
        guard path.hasPrefix("/") else { return path }
        return "/" + path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }.filter { $0 != "." }.joined(separator: "/")
    }

    private static func baseDirectory(
        _ variable: String, below folder: String, _ environment: [String: String]
    ) throws(KeychainFailure) -> String {
        if let directory = environment[variable], directory.hasPrefix("/") { return directory }
        guard let home = environment["HOME"], home.hasPrefix("/") else {
            throw KeychainFailure(
                .notAvailable,
                "there is no place for a keychain: set HOME, \(variable) or KEYCHAIN_HOME to an absolute path"
            )
        }
        return home + "/" + folder
    }
}

/// Which key holder a keychain uses.
package enum KeyHolderSelection: String, CaseIterable, Sendable {
    /// The kernel's keyring where it is to be had, else the process's memory.
    case automatic
    case kernelKeyring
    case processMemory

    /// Makes the holder of one store.
    ///
    /// Throws `.notAvailable` when the kernel's keyring is asked for by name and refused.
    package func makeHolder(
        storeID: StoreID, epochSource: @escaping LockEpochSource
    ) throws(KeychainFailure) -> any KeyHolder {
        switch self {
        case .kernelKeyring:
            return try KernelKeyHolder(storeID: storeID, epochSource: epochSource)
        case .automatic where KernelKeyring.refusal == nil:
            return try KernelKeyHolder(storeID: storeID, epochSource: epochSource)
        case .automatic, .processMemory:
            return ProcessMemoryKeyHolder(storeID: storeID, epochSource: epochSource)
        }
    }

    /// What `makeHolder` would make.
    package var holderKindForNewStore: KeyHolderKind {
        guard self != .processMemory, KernelKeyring.refusal == nil else { return .processMemory }
        return CurrentProcess.isInInitialUserNamespace ? .kernelKeyring : .kernelKeyringOfUserNamespace
    }
}

/// Reads a store's count of locks, as it is now.
package typealias LockEpochSource = @Sendable () throws(KeychainFailure) -> LockEpoch
