// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore
internal import KeychainSystem

/// The sources of the running program's entitlements.
///
/// The first of these that exists is used: the file that `KEYCHAIN_ENTITLEMENTS` names, `<executable>.entitlements` beside the program,
/// the Flatpak or Snap application ID, and the name of the executable.
///
/// Entitlements are enforced in the process. They separate programs and prevent mistakes, but do not protect against another program of
/// the same user.
package struct CallerEntitlements: Sendable {
    package var environment: [String: String]
    /// The path of the program, whether or not its file was replaced while it runs.
    private let executablePath: String
    /// The user who owns the program's file; nil if unknown.
    package var programOwner: UInt32?
    package var flatpakInformationPath = "/.flatpak-info"

    package init(environment: [String: String], executablePath: String) {
        self.environment = environment
        // The kernel appends this to the link if the program's file was replaced.
        let deleted = " (deleted)"
        self.executablePath = executablePath.hasSuffix(deleted) ? String(executablePath.dropLast(deleted.count)) : executablePath
        programOwner = try? FileStatus(of: executablePath, followsLinks: true).owner
    }

    /// The sources for this process.
    package static func ofThisProcess() -> CallerEntitlements {
        var sources = CallerEntitlements(environment: ProcessEnvironment.variables, executablePath: CurrentProcess.executablePath ?? "")
        // The file that runs, even if its name was given to another one since.
        if let running = try? FileStatus(of: "/proc/self/exe", followsLinks: true) { sources.programOwner = running.owner }
        return sources
    }

    /// Reads the entitlements.
    ///
    /// A file beside the program must belong to the program's owner or to root: in a shared directory every user can put one there.
    /// Throws `.missingEntitlement` for a file that is invalid or cannot be read: with guessed entitlements, items would be stored in
    /// another group.
    package func resolve() throws(KeychainFailure) -> Entitlements {
        let name = executableName
        if let path = environment["KEYCHAIN_ENTITLEMENTS"], !path.isEmpty {
            return try EntitlementsFile.entitlements(atPath: path, defaultIdentifier: name)
        }
        let beside = executablePath + ".entitlements"
        if !name.isEmpty,
            let entitlements = try EntitlementsFile.entitlementsIfPresent(
                atPath: beside, defaultIdentifier: name, owner: .rootOrUser(programOwner))
        {
            return entitlements
        }
        if let sandbox = try sandboxIdentifier() {
            return Entitlements(
                applicationIdentifier: sandbox, origin: "the sandbox's application id; to add groups, set KEYCHAIN_ENTITLEMENTS")
        }
        guard !name.isEmpty else {
            throw KeychainFailure(.missingEntitlement, "the name of this program is unknown; is /proc mounted?", subject: .entitlements)
        }
        return Entitlements(applicationIdentifier: name, origin: "\(beside) (make this file, or name one in KEYCHAIN_ENTITLEMENTS)")
    }

    private var executableName: String {
        executablePath.split(separator: "/").last.map(String.init) ?? ""
    }

    private func sandboxIdentifier() throws(KeychainFailure) -> String? {
        if let information = try EntitlementsFile.contents(ofFile: flatpakInformationPath, "Flatpak's description of the program") {
            return Self.flatpakApplicationName(in: String(decoding: information, as: UTF8.self))
        }
        return environment["SNAP_INSTANCE_NAME"] ?? environment["SNAP_NAME"]
    }

    /// Returns the value of `name` in the section `[Application]` of a key file.
    ///
    /// Source: flatpak-metadata(5).
    static func flatpakApplicationName(in keyFile: String) -> String? {
        var isInApplication = false
        for line in keyFile.split(whereSeparator: \.isNewline).map({ $0.trimmingCharacters(in: .whitespaces) }) {
            if line.hasPrefix("[") {
                isInApplication = line == "[Application]"
            } else if isInApplication, line.hasPrefix("name=") {
                return String(line.dropFirst("name=".count))
            }
        }
        return nil
    }
}
