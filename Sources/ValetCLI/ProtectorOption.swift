// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

/// What can hold the device secret, as it is named on the command line.
enum ProtectorOption: String, CaseIterable, ExpressibleByArgument {
    case keyFile
    case systemdCredential
    case tpm2

    var kind: DeviceProtectorKind {
        switch self {
        case .keyFile: .keyFile
        case .systemdCredential: .systemdCredential
        case .tpm2: .tpm2
        }
    }
}
