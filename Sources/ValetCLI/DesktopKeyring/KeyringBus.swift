// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainSystem

/// The bus of a desktop session, as far as its keyring is concerned.
struct KeyringBus {
    static let serviceName = "org.freedesktop.secrets"
    /// The keychain's portal for the secrets of sandboxed applications.
    static let portalName = "org.freedesktop.impl.portal.desktop.keychain"

    /// The program that has the name of the keyring.
    struct Owner: Equatable {
        /// The connection, which is never given to another program.
        let connection: String
        let process: Int32
        /// The path of the program, or the name that it gives itself.
        let program: String

        var name: String { program.split(separator: "/").last.map(String.init) ?? program }
        var text: String { ItemListing.escapingUnprintable("\(program) (process \(process))") }
        /// Whether it is the keychain's own program, wherever that is installed.
        var isKeychain: Bool { name == KeyringProgram.name }
        var isKWallet: Bool { name.hasPrefix("kwalletd") || name.hasPrefix("ksecretd") }
        var isKeePassXC: Bool { name.hasPrefix("keepassxc") }
        /// Whether it can be ended at any time: GNOME Keyring stores every change at once, and KWallet closes its wallets when it is told to quit.
        var canBeEnded: Bool { name == "gnome-keyring-daemon" || isKWallet }
    }

    private static let busName = "org.freedesktop.DBus"
    private static let systemdName = "org.freedesktop.systemd1"
    /// Longer than the bus waits for a program that it starts.
    private static let timeoutMilliseconds: UInt64 = 60_000
    private static let handoverSeconds: UInt32 = 15

    private let addresses: [LocalSocket.Address]
    private let connection: DBusConnection

    init() throws(CommandFailure) {
        let addresses = DBusAddress.session(ProcessEnvironment.variables)
        self.addresses = addresses
        connection = try Self.explaining { () throws(DBusFailure) in
            try DBusConnection(addresses, timeoutMilliseconds: Self.timeoutMilliseconds)
        }
    }

    /// Connects again, as another program would.
    func otherClient() throws(CommandFailure) -> DBusConnection {
        try Self.explaining { () throws(DBusFailure) in try DBusConnection(addresses, timeoutMilliseconds: Self.timeoutMilliseconds) }
    }

    // MARK: The keyring

    /// The present keyring; nil if none runs.
    func owner() throws(CommandFailure) -> Owner? {
        try Self.explaining { () throws(DBusFailure) in
            do throws(DBusFailure) {
                guard let connection = try call("GetNameOwner", [.text(Self.serviceName)], "s").first?.text,
                    case .number(let number)? = try call("GetConnectionUnixProcessID", [.text(connection)], "s").first,
                    let process = Int32(exactly: number)
                else { throw .malformed }
                return Owner(connection: connection, process: process, program: Self.program(ofProcess: process))
            } catch .error("org.freedesktop.DBus.Error.NameHasNoOwner") {
                return nil
            }
        }
    }

    /// Whether the bus can start a keyring.
    func canStartKeyring() throws(CommandFailure) -> Bool { try canStart(Self.serviceName) }

    /// Whether the bus can start a program of this name.
    func canStart(_ name: String) throws(CommandFailure) -> Bool {
        try Self.explaining { () throws(DBusFailure) in try call("ListActivatableNames").first?.texts?.contains(name) == true }
    }

    /// Has the bus start the keyring, unless one runs; returns whether it has.
    @discardableResult
    func startKeyring() throws(CommandFailure) -> Bool {
        // DBUS_START_REPLY_SUCCESS of the D-Bus Specification; 2 if it runs already.
        let started: UInt64 = 1
        return try Self.explaining { () throws(DBusFailure) in
            guard case .number(let answer)? = try call("StartServiceByName", [.text(Self.serviceName), .number(0)], "su").first else {
                throw .malformed
            }
            return answer == started
        }
    }

    /// Has the bus, and systemd if it manages the session, read their files again.
    func reload() throws(CommandFailure) {
        try Self.explaining { () throws(DBusFailure) in
            _ = try call("ReloadConfig")
            guard try call("NameHasOwner", [.text(Self.systemdName)], "s").first?.boolean == true else { return }
            _ = try connection.call(
                Self.systemdName, path: "/org/freedesktop/systemd1", interface: "\(Self.systemdName).Manager", "Reload", [], signature: "")
        }
    }

    /// Ends the keyring, and waits until its name is free or another program has it.
    func end(_ owner: Owner) throws(CommandFailure) {
        let deadline = Deadline.after(seconds: Self.handoverSeconds)
        do throws(Errno) {
            let process = try ProcessHandle(ofProcess: owner.process)
            // The number belonged to the keyring before the handle was opened, and still does.
            guard try ownerConnection() == owner.connection else { return }
            if owner.isKWallet { try requestQuit(owner) } else { try process.requestEnd() }
            guard try process.waitForEnd(until: deadline) else { throw .timedOut }
        } catch {
            throw CommandFailure(
                .unavailable, "\(owner.text) cannot be ended: \(error)", advice: "End it yourself, then run the command again.")
        }
        // The bus notices the end a moment later.
        while try self.owner()?.connection == owner.connection, !deadline.isOver { MonotonicClock.sleep(nanoseconds: 5_000_000) }
    }

    /// Has a program of KDE quit by itself: KWallet stores changes a few seconds later, and a signal would lose them.
    private func requestQuit(_ owner: Owner) throws(Errno) {
        do throws(DBusFailure) {
            _ = try connection.call(
                owner.connection, path: "/MainApplication", interface: "org.qtproject.Qt.QCoreApplication", "quit", [], signature: "")
        } catch {
            throw .timedOut
        }
    }

    private func ownerConnection() throws(Errno) -> String? {
        do throws(CommandFailure) { return try owner()?.connection } catch { throw .notFound }
    }

    // MARK: Calls

    private func call(_ member: String, _ arguments: [DBusValue] = [], _ signature: String = "") throws(DBusFailure) -> [DBusValue] {
        try connection.call(
            Self.busName, path: "/org/freedesktop/DBus", interface: Self.busName, member, arguments, signature: signature)
    }

    static func explaining<Result>(_ body: () throws(DBusFailure) -> Result) throws(CommandFailure) -> Result {
        do throws(DBusFailure) {
            return try body()
        } catch {
            let (problem, advice) = SecretServiceSource.explanation(of: error)
            throw CommandFailure(.unavailable, problem, advice: advice)
        }
    }

    /// The file of a process, or the name of one that other processes of the user may not examine.
    private static func program(ofProcess id: Int32) -> String {
        if let path = try? FileSystem.target(ofSymbolicLink: "/proc/\(id)/exe") {
            // The kernel's mark of a file that was replaced since.
            let mark = " (deleted)"
            return path.hasSuffix(mark) ? String(path.dropLast(mark.count)) : path
        }
        if let name = ProcessFile("/proc/\(id)/cmdline").bytes?.split(separator: 0).first { return String(decoding: name, as: UTF8.self) }
        return "a program"
    }
}
