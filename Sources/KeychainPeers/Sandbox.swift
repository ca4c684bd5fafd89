// SPDX-License-Identifier: Apache-2.0

/// The sandbox of an application, as Flatpak or snapd describes it.
///
/// It separates applications in sandboxes from each other, and from the secrets of other programs. A program of the user outside of them can make a
/// sandbox of any name, so nothing is kept from such a program by it.
package enum Sandbox: Hashable, Sendable {
    case flatpak(applicationID: String)
    case snap(name: String)
    /// A sandbox of Flatpak that does not say whose it is.
    case unnamed

    /// The access group of the application; nil without a name.
    package var accessGroup: String? {
        switch self {
        case .flatpak(let id): Self.flatpakPrefix + id
        case .snap(let name): Self.snapPrefix + name
        case .unnamed: nil
        }
    }

    private static let flatpakPrefix = "flatpak:"
    private static let snapPrefix = "snap:"

    /// Creates the sandbox with an access group; nil if no sandbox has it.
    init?(accessGroup: String) {
        if accessGroup.hasPrefix(Self.flatpakPrefix) {
            let id = String(accessGroup.dropFirst(Self.flatpakPrefix.count))
            guard Self.isApplicationID(id) else { return nil }
            self = .flatpak(applicationID: id)
        } else if accessGroup.hasPrefix(Self.snapPrefix) {
            let name = String(accessGroup.dropFirst(Self.snapPrefix.count))
            guard Self.isSnapName(name) else { return nil }
            self = .snap(name: name)
        } else {
            return nil
        }
    }

    /// Reads the file /.flatpak-info that each sandbox of Flatpak has: the key `name` of the group `Application`.
    ///
    /// Source: flatpak-metadata(5).
    package init(flatpakInformation bytes: [UInt8]) {
        var isInGroup = false
        var names: [String] = []
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let text = String(decoding: line, as: UTF8.self)
            if text.hasPrefix("[") {
                isInGroup = text == "[Application]"
            } else if isInGroup, text.hasPrefix("name=") {
                names.append(String(text.dropFirst(5)))
            }
        }
        self = names.count == 1 && Self.isApplicationID(names[0]) ? .flatpak(applicationID: names[0]) : .unnamed
    }

    /// Reads the control groups of a process, from the bytes of /proc/PID/cgroup; nil unless snapd has put it into one.
    ///
    /// The last component of a path is `snap.NAME.` and the name of the program or the hook. Source: snapd, sandbox/cgroup.
    package init?(controlGroups bytes: [UInt8]) {
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let component = String(decoding: line, as: UTF8.self).split(separator: "/").last ?? ""
            let parts = component.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count >= 4, parts[0] == "snap", ["scope", "service"].contains(parts[parts.count - 1]) else { continue }
            let name = String(parts[1])
            self = Self.isSnapName(name) ? .snap(name: name) : .unnamed
            return
        }
        return nil
    }

    /// Returns the sandbox that the bytes of /proc/PID/cgroup tell of; nil if they tell of none.
    ///
    /// keychaind reads them itself. A program in a sandbox may keep keychain-peer from answering, or execute another program while that looks at it, but
    /// cannot leave its control group. Without a name for Flatpak, because programs of the user choose that one. Source: systemd, "Desktop
    /// Environment Integration".
    package static func byControlGroups(_ bytes: [UInt8]) -> Sandbox? {
        let isFlatpak = bytes.split(separator: UInt8(ascii: "\n")).contains { line in
            String(decoding: line, as: UTF8.self).split(separator: "/").last?.hasPrefix("app-flatpak-") == true
        }
        return isFlatpak ? .unnamed : Sandbox(controlGroups: bytes)
    }

    /// Whether a text is an application ID of D-Bus.
    private static func isApplicationID(_ text: String) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return text.utf8.count <= 255 && parts.count >= 2 && parts.allSatisfy { !$0.isEmpty }
            && text.utf8.allSatisfy { isAlphanumeric($0) || [UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_")].contains($0) }
    }

    /// Whether a text is the name of a snap, with the key of its instance if it has one.
    private static func isSnapName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 64
            && text.utf8.allSatisfy { isAlphanumeric($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
    }

    static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}
