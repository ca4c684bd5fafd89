// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import KeychainCore
internal import KeychainEngine

extension KeychainSession.State {
    init(_ state: LockState) {
        switch state {
        case .neverUnlocked: self = .neverUnlocked
        case .locked: self = .locked
        case .unlocked: self = .unlocked
        }
    }
}

extension KeychainSession.KeyHolder {
    init(_ kind: KeyHolderKind) {
        switch kind {
        case .kernelKeyring: self = .kernelKeyring
        case .kernelKeyringOfUserNamespace: self = .kernelKeyringOfUserNamespace
        case .processMemory: self = .processMemory
        }
    }
}

extension Passcode {
    init(data: Data) throws(KeychainFailure) {
        // The bytes are read within the closure.
        self = try unsafe data.bytes.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe Passcode(typed: bytes) }
    }
}
