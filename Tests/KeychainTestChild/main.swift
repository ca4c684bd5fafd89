// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore

/// `KeychainTestChild COMMAND [ARGUMENT ...]`: the child process of tests.
///
/// The keychain is that of the environment.
let arguments = Array(CommandLine.arguments.dropFirst())

if let path = CommandLine.arguments.first, path.split(separator: "/").last?.hasPrefix(ScriptedPinentry.prefix) == true {
    try ScriptedPinentry.run(path: path)
    exit(0)
}
guard let name = arguments.first, let command = ChildCommand.all[name] else {
    print("unknown command; known are: \(ChildCommand.all.keys.sorted().joined(separator: ", "))")
    exit(64)
}
do {
    try command(Array(arguments.dropFirst()))
} catch {
    say("failed \((error as? KeychainFailure)?.line ?? "\(error)")")
    exit(1)
}
