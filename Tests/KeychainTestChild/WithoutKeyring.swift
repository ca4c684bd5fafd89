// SPDX-License-Identifier: Apache-2.0
import CKeychainTestShims
import Glibc

extension ChildCommand {
    /// COMMAND [ARGUMENT ...]: becomes that command, with the kernel's keyring refused to it.
    static func withoutKeyring(_ arguments: [String]) throws {
        guard let command = arguments.first, keychain_test_refuse_keyring() == 0 else { throw BadArguments() }
        // Copies that live until this process is another program.
        let pointers = unsafe arguments.map { unsafe strdup($0) } + [nil]
        unsafe execvp(command, pointers)
        throw BadArguments()
    }
}
