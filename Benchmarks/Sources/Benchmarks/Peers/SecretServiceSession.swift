// SPDX-License-Identifier: Apache-2.0
import Foundation

/// gnome-keyring in its own D-Bus session and home folder, so that it never uses the user's keyring.
final class SecretServiceSession {
    let environment: [String: String]
    private let session: CompanionProcess

    /// `home` is an empty folder.
    init(home: String) throws {
        try Peer.require(["dbus-run-session", "gnome-keyring-daemon"], packages: "gnome-keyring dbus")
        var environment = Peer.environment(home: home)
        // The first line is the password. The daemon exits with the bus, and the bus with the shell, which
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
