// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// KeePassXC's command line, with a database that has a password and the default key derivation.
struct KeePassXCPeer: CommandPeer {
    let contestant = Contestant.keePassXC
    let sampleCount = 10
    private let environment: [String: String]
    private let database: String
    private let password = UUID().uuidString

    /// `home` is an empty folder.
    init(home: String) throws {
        try Peer.require(["keepassxc-cli"], packages: "keepassxc")
        environment = Peer.environment(home: home, ["QT_QPA_PLATFORM": "offscreen"])
        database = home + "/passwords.kdbx"
        let export = home + "/export.xml"
        try Self.export().write(toFile: export, atomically: false, encoding: .utf8)
        let command = Command(
            "keepassxc-cli", ["import", "-q", "-p", export, database], environment: environment, input: "\(password)\n\(password)\n")
        _ = try Peer.attempt { try command.output(timeoutSeconds: 120) }
    }

    func command(_ operation: KeychainOperation, _ index: Int) -> Command? {
        switch operation {
        case .get: make(["show", "-s", "-a", "Password"], entry: FilledValet.key(index))
        case .setNew: make(["add", "-p"], entry: "new-\(index)", input: FilledValet.value + "\n")
        case .overwrite: make(["edit", "-p"], entry: FilledValet.key(index), input: FilledValet.value + "\n")
        case .remove: make(["rm"], entry: "new-\(index)")
        case .allKeys: make(["ls"], entry: nil)
        case .contains: nil
        }
    }

    private func make(_ options: [String], entry: String?, input: String = "") -> Command {
        Command(
            "keepassxc-cli", options + ["-q", database] + [entry].compactMap(\.self), environment: environment,
            input: password + "\n" + input)
    }

    /// A thousand entries.
    ///
    /// Their value is part of this source, so it is not secret.
    private static func export() -> String {
        let entries = (0..<Peer.itemCount).map { index in
            "<Entry><String><Key>Title</Key><Value>\(FilledValet.key(index))</Value></String>"
                + "<String><Key>Password</Key><Value ProtectInMemory=\"True\">\(FilledValet.value)</Value></String></Entry>"
        }
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?><KeePassFile><Meta/><Root><Group><Name>Root</Name>\n"
            + entries.joined(separator: "\n") + "</Group></Root></KeePassFile>\n"
    }
}
