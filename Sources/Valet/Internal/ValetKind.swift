// SPDX-License-Identifier: Apache-2.0

/// What sort of valet wrote an item.
///
/// Each sort has a name in the service of its items.
enum ValetKind: Sendable {
    case local
    case iCloud
    case secureEnclave
    case singlePrompt

    var serviceName: String {
        switch self {
        case .local: "VALValet"
        case .iCloud: "VALSynchronizableValet"
        case .secureEnclave: "VALSecureEnclaveValet"
        case .singlePrompt: "VALSinglePromptSecureEnclaveValet"
        }
    }

    /// For a person to read.
    var label: String {
        switch self {
        case .local: "Valet"
        case .iCloud: "iCloud"
        case .secureEnclave: "Secure Enclave"
        case .singlePrompt: "Single Prompt"
        }
    }

    var isSynchronizable: Bool { self == .iCloud }
}
