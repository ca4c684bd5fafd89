// SPDX-License-Identifier: Apache-2.0
import Foundation

/// `PowerCutWorkload COMMAND [ARGUMENT ...]`: uses a keychain while every change of a file is recorded or made to fail.
let arguments = Array(CommandLine.arguments.dropFirst())

do {
    switch arguments.first {
    case "record": try RecordedWorkload.run(Array(arguments.dropFirst()))
    case "failing": try FailingWorkload.run(Array(arguments.dropFirst()))
    default: throw BadArguments()
    }
} catch {
    print("failed \(error)")
    exit(1)
}
