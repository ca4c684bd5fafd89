// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Valet

extension ChildCommand {
    /// THREADS COUNT full|normal|early: each thread sets COUNT new keys, says before each that it will, and acknowledges it.
    ///
    /// With `early` the acknowledgement comes first, as it never may.
    static func acknowledgedSetsOnThreads(_ arguments: [String]) throws {
        guard arguments.count == 3, let threadCount = Int(arguments[0]), let count = Int(arguments[1]),
            let home = ProcessInfo.processInfo.environment["KEYCHAIN_HOME"]
        else { throw BadArguments() }
        let mode = arguments[2]
        let keychain = LocalKeychain(home: home) { configuration in
            if mode == "normal" { configuration.storeOptions.synchronous = .normal }
        }
        let failed = DispatchSemaphore(value: 0)
        let ended = DispatchGroup()
        for thread in 0..<threadCount {
            ended.enter()
            Thread.detachNewThread {
                defer { ended.leave() }
                do {
                    try CurrentKeychain.with(keychain) {
                        let valet = try testValet()
                        for index in 0..<count {
                            let name = "\(thread)-\(index)"
                            say("ask \(name)")
                            if mode == "early" { say("ack \(name)") }
                            try valet.setString("value \(name)", forKey: "key \(name)")
                            if mode != "early" { say("ack \(name)") }
                        }
                    }
                } catch {
                    say("failed \(error)")
                    failed.signal()
                }
            }
        }
        ended.wait()
        if failed.wait(timeout: .now()) == .success { throw BadArguments() }
    }
}
