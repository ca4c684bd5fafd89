// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import Testing

/// What a keychain can be in, as the columns of the specification's table.
enum LockState: CaseIterable, Sendable {
    case neverUnlocked
    case locked
    case unlocked
    case noPasscode

    /// Brings the keychain of the test there, from unlocked or without a passcode.
    func enter() throws {
        let keychain = try #require(InMemoryKeychain.current)
        switch self {
        case .neverUnlocked: try keychain.restart()
        case .locked: try keychain.lock()
        case .unlocked, .noPasscode: try keychain.unlock()
        }
    }
}

/// The protection classes, as the rows of the specification's table.
enum ProtectionClass: String, CaseIterable, Sendable {
    case ak, aku, akpu, ck, cku, dk, dku

    var accessible: CFString { rawValue as CFString }

    /// Whether items of the class can be had in that state.
    func isAvailable(in state: LockState) -> Bool {
        switch self {
        case .ak, .aku: state == .unlocked || state == .noPasscode
        case .akpu: state == .unlocked
        case .ck, .cku: state != .neverUnlocked
        case .dk, .dku: true
        }
    }
}
#endif
