// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// `valet sync` with a folder that both devices reach.
final class ValetSync: SyncPeer {
    let contestant = Contestant.valetSync
    let hasAgents = true
    let state: String
    var shared: String { state + "/shared" }
    private let program: String
    private let home: String
    private let itemCount: Int
    private var agents: [CompanionProcess] = []

    init(home: String, itemCount: Int) throws {
        (self.home, self.itemCount, state) = (home, itemCount, home + "/state")
        program = try ValetCommand.program()
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: false)
        for device in SyncDevice.allCases {
            try FileManager.default.createDirectory(
                atPath: keychain(device), withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        }
        let secrets = Dictionary(uniqueKeysWithValues: (0..<itemCount).map { (FilledValet.key($0), SyncSecret.value("initial-\($0)")) })
        let file = home + "/secrets.json"
        try JSONEncoder().encode(secrets).write(to: URL(filePath: file))
        try Peer.attempt {
            _ = try make(.one, ["import", "json", file, "--cloud"]).output(timeoutSeconds: 1_200)
            _ = try make(.one, ["sync", "start", shared, "--name", "one"]).output(timeoutSeconds: 1_200)
            _ = try joining.output(timeoutSeconds: 1_200)
            for device in [SyncDevice.one, .other, .one] { try synchronize(device) }
        }
    }

    /// The code goes through a file, because a secret is never an argument.
    private var joining: Command {
        let script = """
            valet=$1 shared=$2 other=$3 code=$4
            "$valet" sync invite --accept-number 2>/dev/null | {
                read -r line; echo "$line" >"$code"
                KEYCHAIN_HOME=$other "$valet" sync join "$shared" --name other --accept-number --code-fd 3 3<"$code" || exit
                cat >/dev/null
            }
            """
        return Command(
            "sh", ["-c", script, "sh", program, shared, keychain(.other), home + "/code"], environment: environment(.one))
    }

    func set(_ key: Int, to value: String, on device: SyncDevice) throws {
        try make(device, ["set", "--cloud", FilledValet.key(key)], input: value).run()
    }

    func remove(_ key: Int, on device: SyncDevice) throws {
        try make(device, ["remove", "--cloud", FilledValet.key(key)]).run()
    }

    func value(_ key: Int, on device: SyncDevice) throws -> String? {
        text(try? make(device, ["get", "--cloud", FilledValet.key(key)]).output(timeoutSeconds: 60))
    }

    /// The conflict copies: there are no other conflicts than that of the entry in question.
    func otherValues(_ key: Int, on device: SyncDevice) throws -> [KeptValue] {
        ["1a", "1b", "1c"].compactMap { name in
            text(try? make(device, ["sync", "conflicts", "--show", name]).output(timeoutSeconds: 60)).map { .version($0) }
        }
    }

    @discardableResult
    func send(from device: SyncDevice) throws -> Bool { try synchronize(device) }

    @discardableResult
    func receive(on device: SyncDevice) throws -> Bool { try synchronize(device) }

    @discardableResult
    func synchronize(_ device: SyncDevice) throws -> Bool {
        _ = try make(device, ["sync", "now"]).output(timeoutSeconds: 600)
        return false
    }

    /// One write at a time, beside a running agent.
    func makeMissedChanges(_ count: Int) throws {
        let agent = try startAgent(.one)
        for index in 0..<count { try set(index % itemCount, to: SyncSecret.value("missed-\(index)"), on: .one) }
        agent.interrupt()
        try synchronize(.one)
    }

    func startAgents() throws {
        for device in SyncDevice.allCases { agents.append(try startAgent(device)) }
    }

    /// An agent writes a line to standard error when it starts.
    private func startAgent(_ device: SyncDevice) throws -> CompanionProcess {
        let command = Command(
            "sh", ["-c", "exec \"$0\" sync run 2>&1", program], environment: environment(device))
        let agent = try CompanionProcess(command)
        _ = try agent.readLine()
        return agent
    }

    func endAgents() {
        for agent in agents { agent.interrupt() }
        agents = []
    }

    func end() { endAgents() }

    private func keychain(_ device: SyncDevice) -> String { "\(state)/\(device)" }

    private func environment(_ device: SyncDevice) -> [String: String] {
        Peer.environment(home: home, ["KEYCHAIN_HOME": keychain(device)])
    }

    private func make(_ device: SyncDevice, _ arguments: [String], input: String = "") -> Command {
        Command(program, arguments, environment: environment(device), input: input)
    }

    private func text(_ data: Data?) -> String? { data.map { String(decoding: $0, as: UTF8.self) } }
}
