// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainSystem

/// The places of a user's files that decide which program is the keyring.
///
/// Source: XDG Base Directory Specification; a relative path is ignored.
struct KeyringPlaces {
    private static let unitName = "\(KeyringProgram.name).service"
    private static let formerUnitNames = ["gnome-keyring-daemon.service", "gnome-keyring-daemon.socket"]
    private static let autostartName = "gnome-keyring-secrets.desktop"
    static let note = "# Written by `valet secret-service enable`. `valet secret-service disable` removes it.\n"
    /// The variables by which a keychain is found: the session of the bus may lack what is set here.
    private static let keychainVariables = ["KEYCHAIN_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"]

    private let environment: [String: String]
    private let configuration: String
    private let data: String
    private let state: String

    init(_ environment: [String: String]) throws(CommandFailure) {
        func directory(_ variable: String, _ suffix: String) throws(CommandFailure) -> String {
            if let path = environment[variable], path.hasPrefix("/") { return path }
            guard let home = environment["HOME"], home.hasPrefix("/") else {
                throw CommandFailure(.usage, "HOME is not set to an absolute path", advice: "Run the command in the desktop session.")
            }
            return home + suffix
        }
        self.environment = environment
        configuration = try directory("XDG_CONFIG_HOME", "/.config")
        data = try directory("XDG_DATA_HOME", "/.local/share")
        state = try directory("XDG_STATE_HOME", "/.local/state")
    }

    /// The record of what was changed.
    var record: String { state + "/keychain/secret-service.json" }
    /// A file that is not there yet.
    var unusedPathForKeptContents: String {
        var number = 1
        func path() -> String { "\(state)/keychain/secret-service-kept-\(number).json" }
        while FileSystem.exists(path()) { number += 1 }
        return path()
    }
    var wallet: String { configuration + "/kwalletrc" }
    var activation: String { activation(of: KeyringBus.serviceName) }

    private func activation(of name: String) -> String { "\(data)/dbus-1/services/\(name).service" }

    /// The settings of other programs to change.
    func settings(disablesWallet: Bool) -> [Setting] {
        // Source: KWallet, src/kwalletsettings.kcfg.
        let wallet = Setting(path: wallet, group: KeyringBus.serviceName, key: "apiEnabled") { _ in "false" }
        let portal = PortalPreference.setting(environment, configuration: configuration, data: data)
        return (disablesWallet ? [wallet] : []) + (portal.map { [$0] } ?? [])
    }

    /// The files to write, the one by which the bus starts the program last.
    func files(for program: KeyringProgram) throws(CommandFailure) -> [(path: String, content: FileContent)] {
        let units = configuration + "/systemd/user/"
        let variables = Self.keychainVariables.compactMap { name in environment[name].map { (name, $0) } }.filter { $0.1.hasPrefix("/") }
        for path in [program.path] + variables.map(\.1) { try requirePlainPath(path) }
        var files: [(String, FileContent)] = Self.formerUnitNames.map { (units + $0, .link(target: "/dev/null")) }
        let directories = (environment["XDG_CONFIG_DIRS"].flatMap { $0.isEmpty ? nil : $0 } ?? "/etc/xdg").split(separator: ":")
        if directories.contains(where: { FileSystem.exists("\($0)/autostart/\(Self.autostartName)") }) {
            let text = "\(Self.note)[Desktop Entry]\nType=Application\nName=Secret Storage Service\nHidden=true\n"
            files.append((configuration + "/autostart/" + Self.autostartName, .file(Data(text.utf8))))
        }
        let unit = """
            \(Self.note)[Unit]
            Description=The keychain as the keyring of the desktop
            Documentation=man:valet.secret-service(1)

            [Service]
            Type=dbus
            BusName=\(KeyringBus.serviceName)
            \(variables.map { "Environment=\($0)=\($1)\n" }.joined())ExecStart=\(program.path)
            UMask=0077
            # Not more: the program that asks for the passcode is started by this one, and has to reach the display.
            NoNewPrivileges=yes

            """
        files.append((units + Self.unitName, .file(Data(unit.utf8))))
        let prefix = variables.isEmpty ? "" : "/usr/bin/env " + variables.map { "\($0)=\($1) " }.joined()
        for name in [KeyringBus.portalName, KeyringBus.serviceName] {
            let text = """
                \(Self.note)[D-BUS Service]
                Name=\(name)
                Exec=\(prefix)\(program.path)
                SystemdService=\(Self.unitName)

                """
            files.append((activation(of: name), .file(Data(text.utf8))))
        }
        return files
    }

    /// Throws for a path that would need quotes, which the bus and systemd write differently.
    private func requirePlainPath(_ path: String) throws(CommandFailure) {
        let isPlain = path.unicodeScalars.allSatisfy { scalar in
            scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || "/._+@:,~-".unicodeScalars.contains(scalar)
        }
        guard isPlain else {
            throw CommandFailure(
                .usage, "the path \(ItemListing.escapingUnprintable(path)) has characters that the files of the bus cannot name",
                advice: "Nothing was changed. Use a path of letters, digits, and / . _ + @ : , ~ -.")
        }
    }
}

/// What is in the place of a file.
enum FileContent: Codable, Equatable {
    case absent
    case file(Data)
    case link(target: String)

    /// More than a file of settings has.
    private static let largestByteCount = 1 << 20

    init(at path: String) throws(CommandFailure) {
        do throws(KeychainFailure) {
            guard let status = try FileStatus.ifPresent(at: path) else {
                self = .absent
                return
            }
            do throws(Errno) {
                if status.kind == .symbolicLink {
                    self = .link(target: try FileSystem.target(ofSymbolicLink: path))
                    return
                }
                guard status.kind == .regularFile else { throw .invalidArgument }
                let file = try OpenFile(path, .read)
                guard let bytes = try file.descriptor.readToEnd(byteLimit: Self.largestByteCount) else { throw .messageTooLong }
                self = .file(Data(bytes))
            } catch {
                throw KeychainFailure(.notAvailable, "cannot read \(path): \(error)")
            }
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Puts this in the place of a file, which keeps its permissions; `permissions` are those of a file that another one has replaced since.
    func write(to path: String, permissions: UInt32? = nil) throws(CommandFailure) {
        do throws(KeychainFailure) {
            let present = try FileStatus.ifPresent(at: path)
            do throws(Errno) {
                // The bytes of a file are replaced atomically, and keep its permissions.
                if present?.kind == .symbolicLink || self == .absent || !isFile { try FileSystem.unlink(path) }
                if case .link(let target) = self { try FileSystem.createSymbolicLink(path, to: target) }
                // The record that names the file is removed later.
                if !isFile { try FileSystem.flush(FileSystem.parent(of: path)) }
            } catch {
                throw FileSystem.creationFailure(error, in: FileSystem.parent(of: path))
            }
            guard case .file(let data) = self else { return }
            _ = try AtomicFile(path).write(replacingExisting: true) { writer throws(KeychainFailure) in try writer.append(data) }
            if let permissions = present.flatMap({ $0.kind == .regularFile ? $0.permissions : nil }) ?? permissions {
                try? FileSystem.setPermissions(permissions, of: path)
            }
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Whether `enable` has written the file.
    var isWrittenBySetup: Bool {
        if case .file(let data) = self { data.starts(with: KeyringPlaces.note.utf8) } else { false }
    }

    /// The text of a file, or that of the one to make if there is none; nil for a link, and for a file of bytes.
    func text(orElse initialText: String) -> String? {
        switch self {
        case .absent: initialText
        case .file(let data): String(validating: data, as: UTF8.self)
        case .link: nil
        }
    }

    /// The permissions of a regular file; nil for anything else.
    static func permissions(of path: String) -> UInt32? {
        guard let status = try? FileStatus(of: path), status.kind == .regularFile else { return nil }
        return status.permissions
    }

    private var isFile: Bool { if case .file = self { true } else { false } }
}
