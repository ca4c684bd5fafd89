// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore

/// The programs that may use an item although no person has agreed.
///
/// It is the name that keychaind has for the program which has stored the item, such as `program:/usr/bin/evolution`, or that of several programs which
/// share items, or empty: every program of the user.
struct ItemOwner: Hashable, Sendable {
    // Bytes, not text: paths that Unicode takes for equivalent are different programs.
    private let bytes: [UInt8]

    /// The owner of items from programs that keychaind cannot tell apart, and of imported ones.
    static let everyProgram = ItemOwner("")

    init(_ text: String) { bytes = Array(text.utf8) }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// For a person.
    var description: String {
        if let shared = SharedItems.all.first(where: { $0.owner == self }) { return shared.title }
        return text.hasPrefix(Self.programPrefix) ? String(text.dropFirst(Self.programPrefix.count)) : text
    }

    static let programPrefix = "program:"
}

/// A program on the bus.
struct Caller: Sendable {
    /// The unique name of its connection.
    let connection: String
    let process: Int32
    /// What the program calls itself.
    let title: String
    /// The name that keychaind has for it; nil for one that it cannot tell from others.
    let program: String?

    /// The last part of the path of a program that is known by its file, which only root can change.
    var fileName: Substring? {
        guard let program, program.hasPrefix(ItemOwner.programPrefix) else { return nil }
        return program.split(separator: "/").last
    }

    /// For a person.
    var description: String {
        program.map { "\(ItemOwner($0).description) (process \(process))" } ?? "An unverified program (\(title), process \(process))"
    }

    /// The program to which a person's consent counts for good; nil for one that does what the program says which runs it.
    var identity: ItemOwner? {
        guard let program, !Self.toolNames.contains(fileName ?? "") else { return nil }
        return ItemOwner(program)
    }

    private static let toolNames: Set<Substring> = [
        "busctl", "dbus-send", "gdbus", "git-credential-libsecret", "qdbus", "qdbus6", "secret-tool", "socat", "systemd-stdio-bridge",
        "xdg-dbus-proxy",
    ]

    /// The owner of an item that the program stores.
    func owner(of lookup: ItemLookup) -> ItemOwner {
        guard let program else { return .everyProgram }
        let shared = SharedItems.all.first { $0.contains(lookup) && $0.contains(self) }
        return shared?.owner ?? ItemOwner(program)
    }

    /// Whether items of the owner are the program's own.
    func owns(_ owner: ItemOwner) -> Bool {
        if owner == .everyProgram { return true }
        if let program, ItemOwner(program) == owner { return true }
        return SharedItems.all.contains { $0.owner == owner && $0.contains(self) }
    }

    /// Whether the program shows a person all items there are, also those that it may not read.
    var listsAllItems: Bool { fileName == "seahorse" }
}

/// Items that several programs of a desktop store, and read from each other.
///
/// A program is known by the name of its file, which only root can put there. An item belongs to these programs if one of them has stored it.
struct SharedItems: Sendable {
    let owner: ItemOwner
    /// For a person.
    let title: String
    private let schemas: Set<String>
    private let programs: Set<Substring>

    private init(_ name: String, _ title: String, schemas: Set<String>, programs: Set<Substring>) {
        owner = ItemOwner("shared:\(name)")
        self.title = title
        self.schemas = schemas
        self.programs = programs
    }

    func contains(_ lookup: ItemLookup) -> Bool { lookup[ItemAttribute.schema].map(schemas.contains) ?? false }

    func contains(_ caller: Caller) -> Bool { caller.fileName.map(programs.contains) ?? false }

    static let all = [
        SharedItems(
            "network", "the programs for network connections", schemas: ["org.freedesktop.NetworkManager.Connection"],
            programs: [
                "cinnamon", "gnome-control-center", "gnome-shell", "kcmshell5", "kcmshell6", "kded5", "kded6", "nm-applet",
                "nm-connection-editor", "nm-fortisslvpn-auth-dialog", "nm-iodine-auth-dialog", "nm-l2tp-auth-dialog",
                "nm-libreswan-auth-dialog",
                "nm-openconnect-auth-dialog", "nm-ssh-auth-dialog", "nm-sstp-auth-dialog", "nm-strongswan-auth-dialog",
                "nm-openvpn-auth-dialog", "nm-pptp-auth-dialog", "nm-vpnc-auth-dialog", "plasmashell", "systemsettings",
            ]),
        SharedItems(
            "online-accounts", "the programs for online accounts and mail",
            schemas: ["org.gnome.OnlineAccounts", "org.gnome.Evolution.Data.Source"],
            programs: [
                "evolution", "evolution-addressbook-factory", "evolution-alarm-notify", "evolution-calendar-factory",
                "evolution-source-registry", "evolution-user-prompter", "geary", "gnome-calendar", "gnome-contacts", "gnome-control-center",
                "gnome-control-center-goa-helper", "gnome-online-accounts-gtk", "goa-daemon", "goa-identity-service", "goa-oauth2-handler",
            ]),
        SharedItems(
            "network-places", "the programs for network places", schemas: ["org.gnome.keyring.NetworkPassword"],
            programs: [
                "caja", "gvfsd", "gvfsd-afp", "gvfsd-afp-browse", "gvfsd-dav", "gvfsd-ftp", "gvfsd-http", "gvfsd-nfs", "gvfsd-sftp",
                "gvfsd-smb", "gvfsd-smb-browse", "nautilus", "nemo", "thunar",
            ]),
        SharedItems(
            "git", "the programs for git", schemas: ["org.git.Password"],
            programs: ["git-credential-libsecret", "git-credential-manager", "gitg", "gnome-builder"]),
        SharedItems(
            "encrypted-disks", "the programs for encrypted disks", schemas: ["org.gnome.GVfs.Luks.Password"],
            programs: ["gnome-disks", "gnome-shell", "gvfs-udisks2-volume-monitor", "gvfsd"]),
        SharedItems(
            "remote-desktop", "the programs for remote desktops", schemas: ["org.gnome.RemoteDesktop.RdpCredentials"],
            programs: ["gnome-control-center", "gnome-remote-desktop-daemon", "grdctl"]),
    ]
}
#endif
