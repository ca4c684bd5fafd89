// SPDX-License-Identifier: Apache-2.0

// A service of a fleet: any number of machines run it, and each begins with an empty disk. It signs the lines of standard input with a key that an
// owner of the circle has stored, and that owners replace while it runs:
//
//     printf swordfish | valet set signing-key --cloud --app signer --identifier signer --accessibility after-first-unlock
//     valet sync credential create --name signer --valid 90d --output credential
#if !canImport(Darwin)
import Crypto
import Foundation
import KeychainSync
import Valet

func log(_ text: String) { FileHandle.standardError.write(Data("signer: \(text)\n".utf8)) }
func answer(_ text: String) { FileHandle.standardOutput.write(Data("\(text)\n".utf8)) }

guard CommandLine.arguments.count == 3 else {
    log("usage: signer FOLDER CREDENTIAL")
    exit(64)
}
// With etcd: try EtcdStorage(location: "etcd://db1,db2,db3/fleet?ca=/etc/signer/ca.pem")
let storage = FolderStorage(path: CommandLine.arguments[1])
let synchronization: Task<Void, Never>
do {
    let start = ContinuousClock.now
    // On an empty disk this loads what the circle has, and later what is new.
    let joined = try await KeychainSync.join(on: storage, credential: SyncCredential(path: CommandLine.arguments[2]))
    if let unread = joined.unread { log("not everything was read: \(unread)") }
    let agent = try SyncAgent(on: storage)
    // Detached, because the main actor waits for lines.
    synchronization = Task.detached {
        // The service goes on with the secrets that it has.
        do { try await agent.run() } catch { log("synchronization has ended: \(error)") }
    }
    log("ready after \(ContinuousClock.now - start), with \(joined.sharedItemCount) items")
} catch {
    log("\(error)")
    exit(1)
}

let vault = Valet.iCloudValet(with: "signer", accessibility: .afterFirstUnlock)
while let line = readLine() {
    do {
        let key = SymmetricKey(data: try vault.object(forKey: "signing-key"))
        let signature = HMAC<SHA256>.authenticationCode(for: Data(line.utf8), using: key)
        answer(signature.map { String(format: "%02x", $0) }.joined())
    } catch {
        answer("error: \(error.localizedDescription)")
    }
}
synchronization.cancel()
await synchronization.value
#endif
