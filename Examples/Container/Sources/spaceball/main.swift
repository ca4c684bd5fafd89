// SPDX-License-Identifier: Apache-2.0
import Foundation
import Valet

/// A service that signs in with a token from its keychain.
///
///     spaceball store    # stores the token that it reads from standard input
///     spaceball
func run() throws {
    let vault = Valet.valet(with: "spaceball", accessibility: .afterFirstUnlock)
    let token = ValetKey<String>("token")
    if CommandLine.arguments.dropFirst().first == "store" {
        try vault.set(readLine() ?? "", for: token)
    } else {
        print("Signed in with a token of \(try vault.value(for: token).count) characters.")
    }
}

do {
    try run()
} catch {
    // For example: "There is no value. …" The text contains neither a key nor a value.
    FileHandle.standardError.write(Data("spaceball: \(error.localizedDescription)\n".utf8))
    exit(1)
}
