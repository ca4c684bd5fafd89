// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport

extension ChildCommand {
    /// GOOD BAD ...: uses the keychain below GOOD and fails on the ones below BAD, many times; says how many descriptors were open before and after.
    static func countDescriptors(_ arguments: [String]) throws {
        guard let good = arguments.first else { throw BadArguments() }
        // What opens once for the process, such as the source of random bytes, is open after the first round.
        try useAll(good, arguments.dropFirst())
        let before = try openDescriptorCount()
        for _ in 0..<50 { try useAll(good, arguments.dropFirst()) }
        say("before \(before)")
        say("after \(try openDescriptorCount())")
    }

    private static func useAll(_ good: String, _ bad: ArraySlice<String>) throws {
        let account = "account \(UInt64.random(in: 0 ... .max))"
        let keychain = LocalKeychain(home: good)
        try keychain.addItem(account, "secret")
        guard try keychain.secret(of: account) == "secret" else { throw BadArguments() }
        try keychain.deleteItem(account)
        for home in bad {
            let keychain = LocalKeychain(home: home)
            let results = [Result { try keychain.addItem(account, "secret") }, Result { _ = try keychain.secret(of: account) }]
            for case .success in results { throw BadArguments() }
        }
    }

    static func openDescriptorCount() throws -> Int {
        // The descriptor that reads the directory is counted both times.
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
}
