// SPDX-License-Identifier: Apache-2.0
import Foundation

let arguments = CommandLine.arguments
guard arguments.count == 3 else {
    print("usage: token save|read|remove ACCOUNT")
    exit(2)
}
do {
    let store = TokenStore()
    switch arguments[1] {
    case "save": try store.save(FileHandle.standardInput.readDataToEndOfFile(), account: arguments[2])
    case "read":
        guard let token = try store.token(account: arguments[2]) else { exit(1) }
        FileHandle.standardOutput.write(token)
    case "remove": try store.remove(account: arguments[2])
    default: exit(2)
    }
} catch {
    print(error.localizedDescription)
    exit(3)
}
