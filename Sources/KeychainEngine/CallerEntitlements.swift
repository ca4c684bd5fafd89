// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore
internal import KeychainSystem

/// What the running program is entitled to, from the first of these that exists: the file that `KEYCHAIN_ENTITLEMENTS`
/// names, `<executable>.entitlements` beside the program, the Flatpak or Snap application id, the executable's name.
///
/// In-process this is a namespace and a guard against mistakes, not a defence against another program of the same user.
package struct CallerEntitlements: Sendable {
    package var environment: [String: String]
    package var executablePath: String
    package var flatpakInformationPath = "/.flatpak-info"

    package init(environment: [String: String], executablePath: String) {
        self.environment = environment
        self.executablePath = executablePath
    }

    /// The program that runs this.
    package static func ofThisProcess(environment: [String: String]) -> CallerEntitlements {
        let path = CurrentProcess.executablePath ?? CommandLine.arguments.first
        return CallerEntitlements(environment: environment, executablePath: path ?? "")
    }

    /// Throws `.missingEntitlement` when a file is there and cannot be understood: guessing would put items elsewhere.
    package func resolve() throws(KeychainFailure) -> Entitlements {
        let name = executableName
        if let path = environment["KEYCHAIN_ENTITLEMENTS"], !path.isEmpty {
            return try EntitlementsFile.entitlements(atPath: path, defaultIdentifier: name)
        }
        let beside = executablePath + ".entitlements"
        if FileManager.default.fileExists(atPath: beside) {
            return try EntitlementsFile.entitlements(atPath: beside, defaultIdentifier: name)
        }
        if let sandbox = sandboxIdentifier {
            return Entitlements(
                applicationIdentifier: sandbox, origin: "the sandbox's application id; to add groups, set KEYCHAIN_ENTITLEMENTS")
        }
        return Entitlements(applicationIdentifier: name, origin: "\(beside) (make this file, or name one in KEYCHAIN_ENTITLEMENTS)")
    }

    private var executableName: String {
        // The kernel marks the link of a program whose file was replaced while it runs.
        let deleted = " (deleted)"
        let path = executablePath.hasSuffix(deleted) ? String(executablePath.dropLast(deleted.count)) : executablePath
        return path.split(separator: "/").last.map(String.init) ?? ""
    }

    private var sandboxIdentifier: String? {
        if let information = try? String(contentsOfFile: flatpakInformationPath, encoding: .utf8) {
            return Self.flatpakApplicationName(in: information)
        }
        return environment["SNAP_INSTANCE_NAME"] ?? environment["SNAP_NAME"]
    }

    /// `name` in the section `[Application]` of a key file.
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
