// SPDX-License-Identifier: Apache-2.0

/// A measured program or limit.
package enum Contestant: String, Codable, CaseIterable, Sendable {
    case rawSQLite = "raw SQLite"
    case bareAppend = "append + fdatasync"
    case aesGCM = "AES-256-GCM"
    case valet = "Valet"
    case valetCommand = "valet"
    case valetWithDaemon = "Valet with keychaind"
    case keychainSecretService = "keychain-secret-service"
    case libsecretWithKeychain = "libsecret with keychain-secret-service"
    case secretToolWithKeychain = "secret-tool with keychain-secret-service"
    case libsecret
    case secretTool = "secret-tool"
    case pythonKeyring = "python-keyring"
    case keyringCommand = "python3 -m keyring"
    case pass
    case keePassXC = "keepassxc-cli"
    case gnomeKeyringDaemon = "gnome-keyring-daemon"
    case valetSync = "valet sync"
    case passWithGit = "pass with git"
    case passWithGcrypt = "pass with git-remote-gcrypt"
    case gopassWithGit = "gopass with git"
    case keePassXCMerge = "keepassxc-cli merge"

    /// The role of a contestant in the comparison.
    package enum Role: Sendable {
        /// A lower bound for every program that performs the same operation.
        case limit
        case ours
        case peer
    }

    package var role: Role {
        switch self {
        case .rawSQLite, .bareAppend, .aesGCM: .limit
        case .valet, .valetCommand, .valetWithDaemon, .valetSync, .keychainSecretService, .libsecretWithKeychain,
            .secretToolWithKeychain:
            .ours
        case .libsecret, .secretTool, .pythonKeyring, .keyringCommand, .pass, .keePassXC, .gnomeKeyringDaemon,
            .passWithGit, .passWithGcrypt, .gopassWithGit, .keePassXCMerge:
            .peer
        }
    }
}
