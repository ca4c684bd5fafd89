// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainSystem

/// The passwords of `pass`: a directory of files that GnuPG decrypts, each under its name.
///
/// An entry of several lines is stored whole, or its first line alone, which is what `pass --clip` copies.
struct PasswordStoreSource: SecretSource {
    let directory: String
    let takesFirstLineOnly: Bool
    var environment = ProcessEnvironment.variables
    /// The time for one entry: a person may have to type the passphrase of the key.
    var entryTimeoutMilliseconds: UInt64 = 5 * 60_000

    private static let largestEntryByteCount = 1 << 20

    func read() throws(CommandFailure) -> SourceContent {
        var content = SourceContent(
            removalAdvice: "The entries still exist, encrypted. Remove them with: rm -r -- \(SourceFile.quotedForShell(directory))")
        let names = try entryNames(in: directory, prefix: "", [], &content)
        guard !names.isEmpty || !content.omissions.isEmpty else {
            throw CommandFailure(
                .notFound, "\(ItemListing.escapingUnprintable(directory)) has no entries of pass; nothing was stored",
                advice: "Give the directory that has the .gpg files.")
        }
        guard let gpg = executable("gpg") ?? executable("gpg2") else {
            throw CommandFailure(
                .unavailable, "gpg is not installed; nothing was stored", advice: "Install GnuPG, for example the package gnupg.")
        }
        for name in names {
            var secret = try decrypt(name, gpg)
            defer { secret.wipe() }
            let isOneLine = !secret.dropLast().contains(UInt8(ascii: "\n"))
            let value = isOneLine || takesFirstLineOnly ? Self.firstLine(of: secret) : Data(secret)
            if takesFirstLineOnly, !isOneLine {
                content.omissions.append(.init(note: "\(ItemListing.escapingUnprintable(name)): the lines after the first one"))
            }
            // gpg succeeds, and writes nothing, if the file ends within its first packet.
            if secret.isEmpty { try requireDecryption(name, gpg) }
            try content.add(FoundSecret(key: name, value: value, place: ItemListing.escapingUnprintable(name) + ".gpg"))
        }
        return content
    }

    /// Returns the first line without its line break, which is CR LF in an entry that was written on another platform.
    private static func firstLine(of secret: [UInt8]) -> Data {
        let end = secret.firstIndex(of: UInt8(ascii: "\n")) ?? secret.endIndex
        let line = secret[..<end]
        return Data(end < secret.endIndex && line.last == UInt8(ascii: "\r") ? line.dropLast() : line)
    }

    /// Returns the paths of the entries below the directory, without `.gpg`, in order.
    ///
    /// What is neither an entry nor a file of pass, cannot be examined, or contains itself through a link, is an omission: a person who removes the
    /// directory afterwards would lose it. `ancestors` are the directories on the way to this one.
    private func entryNames(
        in directory: String, prefix: String, _ ancestors: [FileStatus.Identity], _ content: inout SourceContent
    ) throws(CommandFailure) -> [String] {
        let names: [String]
        let identity: FileStatus.Identity
        do throws(Errno) {
            identity = try FileStatus(of: directory, followsLinks: true).identity
            names = try FileSystem.names(in: directory)
        } catch {
            throw CommandFailure(
                error == .notFound ? .notFound : .unavailable, "cannot read \(ItemListing.escapingUnprintable(directory)): \(error)",
                advice: "Nothing was stored. Give the directory that has the .gpg files.")
        }
        guard !ancestors.contains(identity) else {
            content.omissions.append(.init(note: "\(ItemListing.escapingUnprintable(directory)): it is inside of itself, through a link"))
            return []
        }
        var entries: [String] = []
        for name in names.sorted() where !Self.ownNames.contains(name) {
            let path = directory + "/" + name
            let shownName = ItemListing.escapingUnprintable(prefix + name)
            guard !name.hasPrefix(".") else {
                content.omissions.append(.init(note: "\(shownName): its name begins with a dot"))
                continue
            }
            let status: FileStatus
            do throws(Errno) {
                status = try FileStatus(of: path, followsLinks: true)
            } catch {
                // A name that is not UTF-8 was changed when it was read, so nothing is found under it.
                let reason = name.unicodeScalars.contains("\u{FFFD}") ? "its name is not UTF-8" : "\(error)"
                content.omissions.append(.init(note: "\(shownName): \(reason)"))
                continue
            }
            switch status.kind {
            case .directory: entries += try entryNames(in: path, prefix: prefix + name + "/", ancestors + [identity], &content)
            case .regularFile where name.hasSuffix(".gpg"): entries.append(prefix + name.dropLast(4))
            default: content.omissions.append(.init(note: "\(shownName): it is not an entry of pass"))
            }
        }
        return entries
    }

    /// The files of pass itself, and of git.
    ///
    /// Source: pass(1), FILES.
    private static let ownNames: Set<String> = [
        ".", "..", ".gpg-id", ".gpg-id.sig", ".extensions", ".public-keys", ".git", ".gitattributes", ".gitignore",
    ]

    /// Throws unless gpg reports that it has decrypted the entry to its end.
    private func requireDecryption(_ name: String, _ gpg: String) throws(CommandFailure) {
        let status = try decrypt(name, gpg, ["--status-fd", "1", "--output", "/dev/null"])
        guard String(decoding: status, as: UTF8.self).contains("[GNUPG:] DECRYPTION_OKAY") else {
            throw failure(name, "gpg cannot decrypt it")
        }
    }

    private func decrypt(_ name: String, _ gpg: String, _ options: [String] = []) throws(CommandFailure) -> [UInt8] {
        let process: PipedProcess
        let decrypted: [UInt8]?
        do throws(Errno) {
            process = try PipedProcess(
                path: gpg, arguments: ["--quiet", "--batch"] + options + ["--decrypt", "--", "\(directory)/\(name).gpg"],
                environment: environment,
                leadsSession: false)
            decrypted = try process.readToEnd(
                byteLimit: Self.largestEntryByteCount, until: .after(milliseconds: entryTimeoutMilliseconds))
        } catch {
            let seconds = entryTimeoutMilliseconds / 1_000
            throw failure(name, error == .timedOut ? "gpg did not end within \(seconds) s" : "gpg failed: \(error)")
        }
        guard let decrypted else { throw failure(name, "the entry is larger than 1 MiB") }
        guard process.exitCode == 0 else { throw failure(name, "gpg cannot decrypt it") }
        return decrypted
    }

    private func failure(_ name: String, _ reason: String) -> CommandFailure {
        CommandFailure(
            .unavailable, "\(ItemListing.escapingUnprintable(name)): \(reason); nothing was stored",
            advice: "`gpg --decrypt \(SourceFile.quotedForShell("\(directory)/\(name).gpg"))` shows the reason.")
    }

    private func executable(_ name: String) -> String? {
        (environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").lazy.filter { $0.hasPrefix("/") }.map { "\($0)/\(name)" }
            .first(where: FileSystem.isExecutable)
    }
}
