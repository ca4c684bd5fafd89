// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainTestSupport

extension ChildCommand {
    /// HOME SOCKET adopt|release POINT|none: hands a keychain over to keychaind or back, and is killed at the point.
    static func handOver(_ arguments: [String]) throws {
        guard arguments.count == 4 else { throw BadArguments() }
        let keychain = LocalKeychain(home: arguments[0])
        let connector = DaemonClient.connector(toSocketAt: arguments[1])
        let reach = { (point: HandoverPoint) in
            if point.rawValue == arguments[3] { kill(getpid(), SIGKILL) }
        }
        switch arguments[2] {
        case "adopt": say("moved \(try keychain.handOver(to: connector, reach: reach).rowCount)")
        case "release":
            let client = DaemonClient(entitlements: Entitlements(applicationIdentifier: ""), connector: connector)
            say("moved \(try keychain.takeBack(ofUser: getuid(), from: DaemonHandover(client), reach: reach).rowCount)")
        default: throw BadArguments()
        }
    }
}
