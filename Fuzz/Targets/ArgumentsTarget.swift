// SPDX-License-Identifier: Apache-2.0
internal import ArgumentParser
internal import Foundation

@testable internal import ValetCLI

/// The arguments of `valet`, up to where it would begin to do something.
struct ArgumentsTarget: FuzzTarget {
    static let name = "arguments"

    private static let marker = "marker-on-standard-input"

    /// Standard input contains a marker that must not appear in messages.
    ///
    /// The caller's environment has no influence.
    init() throws {
        // Before any other thread: the names and values are copied by the calls.
        for name in ProcessInfo.processInfo.environment.keys where name != "PATH" { unsafe unsetenv(name) }
        let folder = FileManager.default.temporaryDirectory.appending(path: "valet-fuzz-\(getpid())")
        for name in ["HOME", "KEYCHAIN_HOME"] { unsafe setenv(name, folder.path, 1) }
        let input = Pipe()
        try input.fileHandleForWriting.write(contentsOf: Data(Self.marker.utf8))
        guard dup2(input.fileHandleForReading.fileDescriptor, STDIN_FILENO) == STDIN_FILENO else { throw FixedKeys.Impossible() }
        try input.fileHandleForReading.close()
        try input.fileHandleForWriting.close()
    }

    static func seeds() -> [[UInt8]] {
        [
            "set Skroob --identifier a --accessibility whenUnlocked", "get Skroob --app x --group T.g", "list --json", "exists a b",
            "remove --all", "migrate --from a --to b", "run --env A=b -- printenv A", "status --json", "verify --purge", "passcode set",
            "passcode change --rotate", "unlock --timeout 10m", "lock --all", "backup create f --force", "backup restore f --dry-run",
            "protector set tpm2", "recovery create", "recovery use", "help set", "--version", "set --help",
            "--generate-completion-script zsh",
        ].map { Array($0.replacing(" ", with: "\0").utf8) }
    }

    func run(_ input: [UInt8]) {
        let arguments = input.split(separator: 0, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
        // Completions look into the keychain.
        guard arguments.first != "---completion" else { return }
        do {
            _ = try ValetCommand.parseAsRoot(arguments)
        } catch {
            let message = ValetCommand.fullMessage(for: error)
            expect(!message.contains(Self.marker), "a message contains text of standard input")
            let status = ValetCommand.exitCode(for: error)
            expect(status.isSuccess || !message.isEmpty, "it fails without a word")
        }
        var waiting: CInt = 0
        // One number, which is ours.
        guard unsafe ioctl(STDIN_FILENO, UInt(FIONREAD), &waiting) == 0 else { return expect(false, "standard input was closed") }
        expect(waiting == Self.marker.utf8.count, "standard input was read")
    }
}
