// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import KeychainStore
internal import KeychainSystem

/// The location of a keychain and its settings.
package struct KeychainConfiguration: Sendable {
    /// The absolute path of the database file.
    package var storePath: String
    /// The absolute path of the directory of key files.
    package var keyDirectory: String
    /// The protector of a store that is yet to be created; nil: a systemd credential if there is one, otherwise a key file.
    package var protectorForNewStore: DeviceProtectorKind?
    /// The directory of the service's systemd credentials, if it has any.
    ///
    /// A relative path is an error for what needs the credential, and for nothing else: the variable is not of this library alone.
    package var credentialsDirectory: String?
    /// The TPM, in the notation of tpm2-tss.
    ///
    /// Only keychains with the protector `.tpm2` use it; no other TPM is ever tried.
    package var tpmTCTI = KeychainConfiguration.standardTPMTCTI
    /// A sealing device for tests; nil: the TPM at `tpmTCTI`.
    package var sealingDevice: (any SealingDevice)?
    /// Where the keys of an unlocked keychain are held.
    ///
    /// Not set by the environment.
    package var keyHolder = KeyHolderSelection.automatic
    /// The keys that a `.processMemory` holder uses.
    ///
    /// Tests use a set of their own with a clock of their own.
    package var processKeys = ProcessMemoryKeys.shared
    /// The path of the administrator's rules for passcodes.
    ///
    /// Not set by the environment: a user could name another file.
    package var policyPath = PasscodePolicy.systemPath
    /// The policy if there is no file at `policyPath`, which may then also belong to the user.
    ///
    /// For tests, whose passcodes protect nothing.
    package var testPolicy: PasscodePolicy?
    /// The program that asks a person for a passcode or password.
    package var pinentry = PinentrySelection.automatic
    /// The terminal and the display of the person, for that program.
    package var promptEnvironment = PromptEnvironment()
    /// Replaces `pinentry` and `promptEnvironment`.
    ///
    /// For tests.
    package var presencePrompter: (any PresencePrompter)?
    /// How long a person has to answer, in seconds.
    package var promptTimeoutSeconds = PresenceQuestion.standardTimeoutSeconds
    /// Held while a prompt is shown; that of this process by default.
    package var promptLock = TimedLock.promptLock
    /// The clock that limits the reuse of an authentication.
    package var time: any ContinuousTime = SystemContinuousTime()
    /// How the store is opened.
    ///
    /// Not set by the environment.
    package var storeOptions = StoreOptions()
    /// How much the store may keep; nil: as much as the disk has room for.
    package var quota: StoreQuota? {
        get { storeOptions.quota }
        set { storeOptions.quota = newValue }
    }

    /// The TPM device that the kernel shares among programs.
    package static let standardTPMTCTI = "device:/dev/tpmrm0"

    package init(
        storePath: String, keyDirectory: String, protectorForNewStore: DeviceProtectorKind? = nil,
        credentialsDirectory: String? = nil
    ) {
        self.storePath = Self.normalizedPath(storePath)
        self.keyDirectory = Self.normalizedPath(keyDirectory)
        self.protectorForNewStore = protectorForNewStore
        self.credentialsDirectory = credentialsDirectory
    }

    /// A keychain below one directory, as `KEYCHAIN_HOME` names it.
    package init(home: String) {
        self.init(storePath: home + "/keychain.db", keyDirectory: home + "/keys")
    }

    /// Returns the paths of the anchors of a store: what its processes remember of it outside of its file.
    ///
    /// They are beside the place of the key file, whichever protector the store has. Their names contain a checksum of the store's path,
    /// because a snapshot that is opened at another path is older and not rolled back. The first is for `storePath`, because an attacker who
    /// can write to the store's directory can put a link there and choose what the path resolves to. The second is for the resolved path, if it
    /// differs, so that programs that use different names of one store share an anchor.
    package func anchorPaths(for storeID: StoreID) -> [String] {
        anchorSuffixes.map { "\(keyDirectory)/\(storeID.hexadecimal)\($0)" }
    }

    /// What follows the identifier of the store in the names of its anchors.
    private var anchorSuffixes: [String] {
        let resolved = FileSystem.resolveExistingPart(of: storePath)
        return (resolved.hasSameBytes(as: storePath) ? [storePath] : [storePath, resolved]).map { path in
            // FNV-1a with 64 bits.
            let checksum = path.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { checksum, byte in
                (checksum ^ UInt64(byte)) &* 0x100_0000_01B3
            }
            return ".\(Identifier128(high: 0, low: checksum).hexadecimal.suffix(16)).anchor"
        }
    }

    /// Returns the anchors of every store that was at `storePath`, each with the identifier of the store.
    ///
    /// Throws `.notAvailable` if their directory cannot be read.
    func anchorsOfAnyStore() throws(KeychainFailure) -> [(storeID: StoreID, path: String)] {
        let suffixes = anchorSuffixes
        do throws(Errno) {
            return try FileSystem.names(in: keyDirectory).sorted().compactMap { name in
                guard let suffix = suffixes.first(where: name.hasSuffix), let id = StoreID(hexadecimal: name.dropLast(suffix.count))
                else { return nil }
                return (id, "\(keyDirectory)/\(name)")
            }
        } catch .notFound {
            return []
        } catch {
            throw PrivateFile.readFailure(error, "the directory of key files", keyDirectory).located(at: keyDirectory, subject: .keyFile)
        }
    }

    /// Returns the paths of the key files and anchors of an earlier keychain at `storePath`, which keep a new one from being created.
    ///
    /// Those of other keychains in the same directory are not among them. A directory of key files inside that of the keychain has none of
    /// other keychains. If it was copied, its files name the original.
    ///
    /// `unusable` is the path of the key file if that is known to be unusable, so that it need not be read.
    ///
    /// Throws `.notAvailable` if the directory or another key file in it cannot be read.
    package func filesOfEarlierKeychain(including unusable: String? = nil) throws(KeychainFailure) -> [String] {
        if keyDirectory.hasPrefix(FileSystem.parent(of: storePath) + "/"), let names = try? FileSystem.names(in: keyDirectory) {
            return names.sorted().filter { $0.hasSuffix(".key") || $0.hasSuffix(".anchor") }.map { "\(keyDirectory)/\($0)" }
        }
        return try KeyFile(directory: keyDirectory, storePath: storePath).orphanPaths(including: unusable) + anchorsOfAnyStore().map(\.path)
    }

    /// Returns the configuration of this process's environment.
    ///
    /// A privileged process ignores the environment: see `ProcessEnvironment`. Its keychain is below the home directory of its effective
    /// user, and prompts appear only on the terminal.
    /// Throws as `init(environment:)` does.
    package static func fromEnvironment() throws(KeychainFailure) -> KeychainConfiguration {
        let variables = ProcessEnvironment.variables
        guard !variables.isEmpty || !ProcessEnvironment.isPrivileged else {
            throw KeychainFailure(
                .notAvailable,
                "this program has privileges that its caller lacks, so it ignores the environment, and the password database has no home "
                    + "directory for its user")
        }
        return try KeychainConfiguration(environment: variables)
    }

    /// Reads the configuration from environment variables.
    ///
    /// The location is `KEYCHAIN_HOME`; without it `XDG_DATA_HOME` and `XDG_STATE_HOME`; without those, directories below `HOME`.
    /// `KEYCHAIN_PROTECTOR`, `KEYCHAIN_TPM_TCTI`, `KEYCHAIN_PINENTRY` and the variables of the terminal and display,
    /// and `CREDENTIALS_DIRECTORY` are read too.
    ///
    /// Source: XDG Base Directory Specification (a relative path is to be ignored); systemd.exec(5), "Credentials".
    /// Throws `.notAvailable` if no location is named, and `.parameter` for an invalid value.
    package init(environment: [String: String]) throws(KeychainFailure) {
        if let home = environment["KEYCHAIN_HOME"] {
            guard home.hasPrefix("/") else {
                throw KeychainFailure(
                    .parameter, "KEYCHAIN_HOME must be an absolute path", cause: .environmentVariable("KEYCHAIN_HOME"))
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
                throw KeychainFailure(
                    .parameter, "KEYCHAIN_PROTECTOR is none of: \(known)", cause: .environmentVariable("KEYCHAIN_PROTECTOR"))
            }
            protectorForNewStore = kind
        }
        if let tcti = environment["KEYCHAIN_TPM_TCTI"], !tcti.isEmpty { tpmTCTI = tcti }
        pinentry = try PinentrySelection(variable: environment["KEYCHAIN_PINENTRY"])
        promptEnvironment = PromptEnvironment(environment)
        credentialsDirectory = environment["CREDENTIALS_DIRECTORY"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns the path without empty and `.` components.
    private static func normalizedPath(_ path: String) -> String {
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
                "there is no place for a keychain: set HOME, \(variable) or KEYCHAIN_HOME to an absolute path",
                cause: .environmentVariable("KEYCHAIN_HOME"))
        }
        return home + "/" + folder
    }
}

/// The choice of a key holder.
package enum KeyHolderSelection: String, CaseIterable, Sendable {
    /// The kernel's keyring if it is usable, otherwise the process's memory.
    case automatic
    case kernelKeyring
    case processMemory

    /// Creates the key holder of one store; `epochSource` is for keys in the memory of this process.
    ///
    /// Throws `.notAvailable` if `.kernelKeyring` is selected and the kernel refuses it.
    package func makeHolder(
        storeID: StoreID, epochSource: @escaping LockEpochSource, processKeys: ProcessMemoryKeys = .shared
    ) throws(KeychainFailure) -> any KeyHolder {
        switch self {
        case .kernelKeyring:
            return try KernelKeyHolder(storeID: storeID)
        case .automatic where KernelKeyring.refusal == nil:
            return try KernelKeyHolder(storeID: storeID)
        case .automatic, .processMemory:
            return ProcessMemoryKeyHolder(storeID: storeID, epochSource: epochSource, keys: processKeys)
        }
    }

    /// The kind of the holder that `makeHolder` returns.
    package var holderKindForNewStore: KeyHolderKind {
        guard self != .processMemory, KernelKeyring.refusal == nil else { return .processMemory }
        return CurrentProcess.isInInitialUserNamespace ? .kernelKeyring : .kernelKeyringOfUserNamespace
    }
}

/// Reads the current lock epoch of a store, for the thread that watches keys in the memory of this process.
package typealias LockEpochSource = @Sendable () throws(KeychainFailure) -> LockEpoch
