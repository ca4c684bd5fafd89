// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainSystem

/// The program `keychain-secret-service`, which serves the keychain as a keyring.
///
/// It is run, not linked: it needs libsystemd, which a build without the package trait `SecretService` does not.
struct KeyringProgram {
    static let name = "keychain-secret-service"
    /// The exit status of a build without the trait, EX_UNAVAILABLE of sysexits(3).
    private static let withoutTraitStatus: Int32 = 69
    /// Longer than a keyring with many thousand items needs.
    private static let timeout: UInt32 = 30 * 60
    private static let largestOutputByteCount = 65_536
    private static let advice =
        "Build and install it from the sources with `make install-secret-service`. It needs the headers of libsystemd and libgcrypt."

    let path: String

    init(path: String) { self.path = path }

    /// Finds the program beside this one, or in the usual directories of installed programs.
    ///
    /// A program in the build directory of the sources is not taken: it is gone with the next build that fails.
    static func find() throws(CommandFailure) -> KeyringProgram {
        var directories = ["/usr/local/libexec", "/usr/libexec"]
        if let own = CurrentProcess.executablePath.map(FileSystem.parent) {
            directories.insert(contentsOf: [own, FileSystem.parent(of: own) + "/libexec"], at: 0)
        }
        for directory in directories where FileSystem.isExecutable("\(directory)/\(name)") {
            guard let path = try? FileSystem.resolve("\(directory)/\(name)") else { continue }
            // The package manager's list of object files.
            guard !FileSystem.exists("\(path).product/Objects.LinkFileList") else {
                throw CommandFailure(
                    .usage,
                    "\(ItemListing.escapingUnprintable(path)) is in a build directory, which the files of the session must not name",
                    advice:
                        "Nothing was changed. Install it with `make install-secret-service`, or name it with --program if it is to stay there."
                )
            }
            return KeyringProgram(path: path)
        }
        throw CommandFailure(.unavailable, "the program \(name) is not installed", advice: advice)
    }

    /// The program at a path that a person has chosen.
    init(at path: String) throws(CommandFailure) {
        guard let resolved = try? FileSystem.resolve(path), FileSystem.isExecutable(resolved) else {
            throw CommandFailure(
                .usage, "\(ItemListing.escapingUnprintable(path)) is no program",
                advice: "Nothing was changed. Correct the path after --program.")
        }
        self.path = resolved
    }

    /// Throws if the program cannot be a keyring now: its build lacks the trait, or the keychain is locked or cannot be opened.
    func check() throws(CommandFailure) { _ = try run("--check") }

    /// Copies the items of the present keyring, and returns what the program says about it.
    func importItems() throws(CommandFailure) -> String {
        try run("--import").split(separator: "\n").joined(separator: ", ")
    }

    /// How programs share their items, and what a person has allowed them.
    func access() throws(CommandFailure) -> KeyringAccess {
        guard let access = KeyringAccess(try run("--access")) else {
            throw CommandFailure(.unavailable, "\(Self.name) is of another version", advice: Self.advice)
        }
        return access
    }

    func revokeAccess(of program: String) throws(CommandFailure) { _ = try run("--revoke", program) }

    private func run(_ option: String, _ arguments: String...) throws(CommandFailure) -> String {
        let process: PipedProcess
        let bytes: [UInt8]?
        do throws(Errno) {
            // Messages about failures are on standard error.
            process = try PipedProcess(
                path: "/bin/sh", arguments: ["-c", "exec \"$0\" \"$@\" 2>&1", path, option] + arguments,
                environment: ProcessEnvironment.variables,
                leadsSession: false)
            bytes = try process.readToEnd(byteLimit: Self.largestOutputByteCount, until: .after(seconds: Self.timeout))
        } catch {
            throw CommandFailure(
                .unavailable, "\(path) \(option): \(error)", advice: "Nothing was switched. Run the command again.")
        }
        let output = String(decoding: bytes ?? [], as: UTF8.self)
        guard process.exitCode == 0 else {
            guard process.exitCode != Self.withoutTraitStatus else {
                throw CommandFailure(
                    .unavailable, "this \(Self.name) was built without the package trait SecretService", advice: Self.advice)
            }
            let prefix = "\(Self.name): "
            let line = output.split(separator: "\n").last.map(String.init) ?? "it ended without a reason"
            throw CommandFailure(
                .unavailable, ItemListing.escapingUnprintable(line.hasPrefix(prefix) ? String(line.dropFirst(prefix.count)) : line),
                advice: option == "--import"
                    ? "Nothing was switched. Solve the problem, then run the command again, or add --no-import to go on without these items."
                    : "Nothing was switched. Solve the problem, then run the command again.")
        }
        return output
    }
}
