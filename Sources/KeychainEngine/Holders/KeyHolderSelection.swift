// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

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
    package var kindForNewStore: KeyHolderKind {
        guard self != .processMemory, KernelKeyring.refusal == nil else { return .processMemory }
        return UserNamespace.isInitial ? .kernelKeyring : .kernelKeyringOfUserNamespace
    }
}
