// SPDX-License-Identifier: Apache-2.0
import Foundation

/// gnome-keyring in a D-Bus session and a home of its own, so that nobody's keyring is touched.
final class SecretServiceSession {
    let environment: [String: String]
    private let session: CompanionProcess

    /// `home` is an empty folder.
    init(home: String) throws {
        try Peer.require(["dbus-run-session", "gnome-keyring-daemon"], packages: "gnome-keyring dbus")
        var environment = Peer.environment(home: home)
        // The password comes with the first line. The daemon leaves its session with the bus, and that with the shell, which
        // waits for the end of its input.
        let script = """
            read -r password
            printf %s "$password" | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1 || exit 1
            printf '%s\\n' "$DBUS_SESSION_BUS_ADDRESS"
            cat >/dev/null
            """
        session = try CompanionProcess(
            Command("dbus-run-session", ["--", "/bin/sh", "-c", script], environment: environment, input: "\(UUID().uuidString)\n"))
        environment["DBUS_SESSION_BUS_ADDRESS"] = try session.readLine()
        self.environment = environment
    }

    func end() { session.end() }

    deinit { end() }
}
