// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A keyring in its own D-Bus session and home folder, so that no measurement uses the user's keyring.
final class SecretServiceSession {
    enum Keyring {
        case gnome
        /// The program `keychain-secret-service`, with a keychain in the home folder.
        case keychain(program: String)
    }

    let environment: [String: String]
    private let session: CompanionProcess

    /// `home` is an empty folder.
    init(home: String, _ keyring: Keyring = .gnome) throws {
        try Peer.require(["dbus-run-session", "dbus-send", "gnome-keyring-daemon"], packages: "gnome-keyring dbus")
        var environment = Peer.environment(home: home, ["KEYCHAIN_HOME": home + "/keychain", "KEYCHAIN_PINENTRY": ""])
        let start =
            switch keyring {
            case .gnome: #"printf %s "$password" | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1 || exit 1"#
            case .keychain(let program): #"mkdir -m 700 "$KEYCHAIN_HOME"; '\#(program)' >/dev/null 2>&1 &"#
            }
        // The first line is the password. The keyring exits with the bus, and the bus with the shell, which
        // waits for the end of its input.
        let script = """
            read -r password
            \(start)
            until dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner \
                string:org.freedesktop.secrets | grep -q true; do sleep 0.05; done
            printf '%s\\n' "$DBUS_SESSION_BUS_ADDRESS"
            cat >/dev/null
            """
        session = try CompanionProcess(
            Command("dbus-run-session", ["--", "/bin/sh", "-c", script], environment: environment, input: "\(UUID().uuidString)\n"))
        environment["DBUS_SESSION_BUS_ADDRESS"] = try session.readLine()
        self.environment = environment
    }

    /// The release build of `keychain-secret-service`.
    static func keychainProgram() throws -> String {
        let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: ".build/install-secret-service/release/keychain-secret-service").path
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw Peer.Unavailable(reason: "\(path) is not there: run `Scripts/install-secret-service.sh build`")
        }
        return path
    }

    func end() { session.end() }

    deinit { end() }
}
