// SPDX-License-Identifier: Apache-2.0
internal import CFuzzer
internal import Foundation

/// Runs libFuzzer on the target that the arguments name.
@main
enum Program {
    /// Ends the program if the arguments name no target.
    // libFuzzer calls from one thread, the one that created this.
    nonisolated(unsafe) static let target: any FuzzTarget = {
        do {
            return try chosenTarget()
        } catch {
            stop("the target cannot be made: \(error)")
        }
    }()

    static func main() {
        _ = unsafe target
        // Swift's signal handlers would end the program, and libFuzzer installs its own only where there are none.
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE] { signal(number, SIG_DFL) }
        var (count, arguments) = unsafe (CommandLine.argc, Optional(CommandLine.unsafeArgv))
        // The arguments live as long as the program.
        exit(unsafe LLVMFuzzerRunDriver(&count, &arguments) { start, count in unsafe Program.tryInput(start, count) })
    }

    private static func tryInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
        // libFuzzer's own buffer of `count` bytes, copied here.
        let input = unsafe [UInt8](UnsafeBufferPointer(start: start, count: count))
        do {
            try unsafe target.run(input)
        } catch {
            expect(false, "an error where there should be none: \(error)")
        }
        return 0
    }

    private static func chosenTarget() throws -> any FuzzTarget {
        let choices = FuzzTargetChoice.all
        guard let name = option("target"), let choice = choices.first(where: { $0.name == name }) else {
            stop(
                "usage: Fuzz --target=NAME [--write-seeds=FOLDER] [libFuzzer's options] [folders]\n  "
                    + choices.map(\.name).joined(separator: "\n  "))
        }
        if let folder = option("write-seeds") {
            for (index, seed) in try choice.seeds().enumerated() {
                try Data(seed).write(to: URL(filePath: folder).appending(path: "seed-\(index)"))
            }
            exit(0)
        }
        return try choice.make()
    }

    /// Arguments that begin with two dashes are the program's own: libFuzzer ignores them.
    static func option(_ name: String) -> String? {
        let prefix = "--\(name)="
        return CommandLine.arguments.last { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
    }

    private static func stop(_ message: String) -> Never {
        FileHandle.standardError.write(Data((message + "\n").utf8))
        exit(2)
    }
}
