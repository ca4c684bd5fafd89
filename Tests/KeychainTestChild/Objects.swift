// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainSync

extension ChildCommand {
    /// FOLDER unnamed|renamed|plain: creates objects of 300,000 bytes until it is killed, and acknowledges each.
    ///
    /// The mode is that of publishing a file.
    static func createObjectsUntilKilled(_ arguments: [String]) throws {
        guard arguments.count == 2 else { throw BadArguments() }
        var options = FolderOptions()
        options.hasUnnamedFiles = arguments[1] == "unnamed"
        options.renamesWithoutReplacing = arguments[1] == "renamed"
        let storage = FolderStorage(path: arguments[0], options: options)
        let ended = DispatchSemaphore(value: 0)
        Task {
            defer { ended.signal() }
            do throws(SyncStorageError) {
                while true {
                    let name = "p/" + Identifier128.random().hexadecimal + Identifier128.random().hexadecimal
                    _ = try await storage.create(name, [UInt8](repeating: 7, count: 300_000))
                    say("ack \(name)")
                }
            } catch {
                say("failed \(error)")
            }
        }
        ended.wait()
    }
}
