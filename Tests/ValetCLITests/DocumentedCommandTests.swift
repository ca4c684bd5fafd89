// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import Testing

@testable import ValetCLI

@Suite("The commands in the documents")
struct DocumentedCommandTests {
    @Test("Each one has arguments that `valet` accepts", arguments: documents)
    func parsed(_ document: URL) throws {
        for arguments in Self.commands(in: try String(contentsOf: document, encoding: .utf8)) {
            #expect(throws: Never.self, "valet \(arguments.joined(separator: " "))") { _ = try ValetCommand.parseAsRoot(arguments) }
        }
    }

    @Test("Commands are found behind a prompt, in a pipe, in a unit file, and without redirections and comments")
    func found() {
        let text = """
            valet text

            ```
            printf 12345 | valet set 'a b' 3<c >d  # valet get e
            ExecStart=/usr/local/bin/valet run \\
                --all -- f
            sudo cp valet g; as_spaceball valet apps
            h "$(valet get i)"
            ```

            ```
            $ valet list
            valet list output
            ```

            ```swift
            valet lock
            ```
            """
        #expect(
            Self.commands(in: text) == [
                ["set", "a b"], ["run", "--all", "--", "f"], ["apps"], ["get", "i"], ["list"],
            ])
    }

    @Test("README and the articles about the command have such commands", arguments: ["README.md", "Moving-In.md", "The-Command.md"])
    func present(_ name: String) throws {
        let document = try #require(Self.documents.first { $0.lastPathComponent == name })
        #expect(Self.commands(in: try String(contentsOf: document, encoding: .utf8)).count >= 5)
    }

    private static let documents: [URL] = {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardizedFileURL
        let articles = FileManager.default.enumerator(at: root.appending(path: "Sources"), includingPropertiesForKeys: nil)?
            .compactMap { $0 as? URL }.filter { $0.pathExtension == "md" }
        return [root.appending(path: "README.md")] + (articles ?? []).sorted { $0.path < $1.path }
    }()

    /// The arguments of each command in the blocks that name no language.
    ///
    /// In a block with prompts, the other lines are output.
    private static func commands(in text: String) -> [[String]] {
        text.split(separator: /(?m)^```/, omittingEmptySubsequences: false).enumerated().flatMap { index, block -> [[String]] in
            guard !index.isMultiple(of: 2), block.hasPrefix("\n") else { return [] }
            let lines = block.replacing(/\\\n */, with: "").split(separator: "\n")
            let prompted = lines.filter { $0.hasPrefix("$ ") }.map { $0.dropFirst(2) }
            return (prompted.isEmpty ? lines : prompted).flatMap { line in
                line.replacing(#/ #.*/#, with: "").replacing(#/ [0-9]*[<>]\S+/#, with: "")
                    .matches(of: /(?:^|[|;(]\ *|as_spaceball\ |=\/usr\/local\/bin\/)valet\ ((?:'[^']*'|[^'|;&)"])*)/)
                    .map { command in
                        command.1.matches(of: /'([^']*)'|(\S+)/).map { String($0.1 ?? $0.2 ?? "") }
                    }
            }
        }
    }
}
