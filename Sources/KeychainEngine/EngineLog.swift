// SPDX-License-Identifier: Apache-2.0
internal import Logging

/// What the engine has to say to whoever runs the program: never a secret, never an attribute's value.
enum EngineLog {
    private static let logger = Logger(label: "keychain")

    static func warn(_ message: String) {
        logger.warning("\(message)")
    }
}
