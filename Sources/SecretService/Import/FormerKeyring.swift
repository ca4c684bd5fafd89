// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore

/// The program whose items are imported, as far as a person has to handle it in another way.
enum FormerKeyring {
    case gnome
    case wallet
    case keePassXC
    case other

    /// `program` is the name of the process.
    init(program: String) {
        self =
            if program.hasPrefix("gnome-keyring") {
                .gnome
            } else if program.hasPrefix("kwalletd") || program.hasPrefix("ksecretd") {
                .wallet
            } else if program.hasPrefix("keepassxc") {
                .keePassXC
            } else {
                .other
            }
    }

    /// How a person makes locked items readable.
    var adviceForLock: String {
        switch self {
        case .gnome: "unlock it in Passwords and Keys (Seahorse)"
        case .wallet: "open the wallet, for example in KWalletManager"
        case .keePassXC: "unlock the database in KeePassXC, and allow the access that its dialog asks for"
        case .other: "unlock it"
        }
    }

    /// What follows the message about an object that the keyring lists but does not have.
    var adviceForMissingObject: String {
        // GNOME Keyring 42 lists the secret that its portal has made for an application, and serves it after the next start.
        if case .gnome = self { ": log out and in, and repeat the import" } else { "" }
    }
}

extension ItemLookup {
    /// The attributes that a program has given to the item, without those that KeePassXC derives from its own entry.
    ///
    /// A program that replaces its item names only its own attributes, and would get a second item. An entry that a person has made in
    /// KeePassXC has no others, and scripts search for these, so they are kept.
    ///
    /// Source: KeePassXC 2.7.4, src/fdosecrets/objects/Item.cpp.
    func withoutEntryAttributes(path: String, label: String) -> ItemLookup {
        guard let identifier = self["Uuid"], path.hasSuffix("/" + identifier), self["Path"] != nil, let title = self["Title"] else {
            return self
        }
        var lookup = self
        lookup[Self.contentTypeName] = nil
        let standardNames = ["Uuid", "Path", "Title", "UserName", "URL", "Notes"]
        guard lookup.attributes.contains(where: { !standardNames.contains($0.name) }) else { return lookup }
        for name in ["Uuid", "Path"] { lookup[name] = nil }
        if title.hasSameBytes(as: label) { lookup["Title"] = nil }
        // A program may have stored these itself, but hardly without a value.
        for name in ["UserName", "URL", "Notes"] where lookup[name]?.isEmpty == true { lookup[name] = nil }
        return lookup
    }

    private static var contentTypeName: String { "FDO_SECRETS_CONTENT_TYPE" }
}
#endif
