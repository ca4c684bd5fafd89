// SPDX-License-Identifier: Apache-2.0

/// Which targets under `Sources` may import the C library or its shims, each with its reason.
private let systemTargets: [String: String] = [
    "KeychainSystem": "it confines the operating system",
    "KeychainCore": "secret memory, locks with a deadline, the testing scope, and random bytes need no file, process, or terminal",
    "ValetC": "memory that C receives is wiped when it is freed; on Apple platforms there is no KeychainSystem",
]
/// Not Darwin: on Apple platforms Foundation is the system.
private let systemLibraries: Set<String> = ["Glibc", "Musl", "Android", "CKeychainShims"]

/// Types, members, and modules of the standard library and of Foundation that access files, clocks, processes, the environment, or the
/// terminal.
private let systemNames: Set<String> = [
    "FileManager", "FileHandle", "FileWrapper", "InputStream", "OutputStream", "Pipe", "Process", "ProcessInfo", "Bundle", "UserDefaults",
    "CommandLine", "Host", "NSHomeDirectory", "NSTemporaryDirectory", "NSUserName", "contentsOfFile", "resolvingSymlinksInPath",
    "ContinuousClock", "SuspendingClock", "DispatchTime", "DispatchWallTime", "CFAbsoluteTimeGetCurrent", "timeIntervalSinceNow", "environ",
    "errno", "stdin", "stdout", "stderr", "timespec", "timeval",
]

/// Functions of the C library, which Foundation and Dispatch export on Linux.
private let systemFunctions: Set<String> = [
    // Files
    "open", "openat", "creat", "close", "read", "pread", "readv", "write", "pwrite", "writev", "lseek", "fsync", "fdatasync", "stat",
    "fstat",
    "lstat", "fstatat", "statfs", "access", "faccessat", "chmod", "fchmod", "chown", "fchown", "link", "unlink", "symlink", "readlink",
    "rename", "mkdir", "rmdir", "mkstemp", "mkdtemp", "realpath", "getcwd", "chdir", "opendir", "readdir", "fopen", "fread",
    "fwrite",
    "fputs", "fprintf", "printf", "puts", "fflush", "fclose", "truncate", "ftruncate", "fcntl", "flock", "lockf", "dup", "dup2", "pipe",
    "poll", "select", "mmap", "munmap", "mlock", "socket", "connect", "umask",
    // Clocks
    "clock_gettime", "gettimeofday", "time", "nanosleep", "usleep", "sleep", "alarm", "keychain_monotonic_nanoseconds",
    // Processes, users, and the environment
    "getenv", "secure_getenv", "setenv", "unsetenv", "putenv", "clearenv", "exit", "abort", "getpid", "getppid", "getuid", "geteuid",
    "getgid", "getegid", "getpwuid", "fork", "vfork", "execv", "execve", "execvp", "posix_spawn", "posix_spawnp", "system", "popen",
    "waitpid",
    "kill", "raise", "signal", "sigaction", "prctl", "syscall", "getrlimit", "setrlimit", "uname", "gethostname", "sysconf",
    // The terminal
    "isatty", "ttyname", "tcgetattr", "tcsetattr", "ioctl", "getpass", "readLine", "print", "debugPrint",
]

/// The uses of the system outside of KeychainSystem, each with its reason.
private let systemExceptions: [String: [String: String]] = [
    "Sources/Locksmith/Locksmith.swift": ["Bundle": "as in Locksmith 4, the default service is the identifier of the program's bundle"],
    "Sources/Valet/Typed/AsynchronousValet+Refresh.swift": [
        "SuspendingClock": "a renewal has a deadline for other processes, also on Apple platforms, where KeychainSystem does not exist"
    ],
]

let systemRules: [Rule] = [
    Rule(
        "Only KeychainSystem and a few targets with a reason import the C library",
        because: "files, clocks, processes, and the terminal are used through one module, which is reviewed as a whole; "
            + systemTargets.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "; "),
        caught: [
            SourceFile(path: "Sources/KeychainStore/A.swift", text: "internal import Glibc"),
            SourceFile(path: "Sources/KeychainEngine/A.swift", text: "internal import CKeychainShims"),
            SourceFile(path: "Sources/ValetCLI/A.swift", text: "import Glibc"),
            SourceFile(path: "Sources/Valet/A.swift", text: "import Musl"),
        ],
        passed: [
            SourceFile(path: "Sources/KeychainSystem/A.swift", text: "internal import CKeychainShims\ninternal import Glibc"),
            SourceFile(path: "Sources/KeychainCore/A.swift", text: "internal import CKeychainShims"),
            SourceFile(path: "Sources/ValetCLI/A.swift", text: "import Foundation\nimport KeychainSystem"),
            SourceFile(path: "Tests/KeychainStoreTests/A.swift", text: "import Glibc"),
        ],
        eachFile: { file in
            guard file.isSource, let target = file.target, systemTargets[target] == nil else { return [] }
            return file.imports.filter { systemLibraries.contains($0.module) }
                .map { file.violation(line: $0.line, "\(target) uses the operating system past KeychainSystem: imports \($0.module)") }
        }
    ),
    Rule(
        "Only KeychainSystem uses files, clocks, processes, the environment, and the terminal",
        because: "Foundation gives every file access to them, and the module that confines them would confine nothing; exceptions: "
            + systemExceptions.sorted { $0.key < $1.key }.flatMap { path, names in names.map { "\($0.key) in \(path): \($0.value)" } }
            .joined(separator: "; "),
        caught: [
            "FileManager.default.fileExists(atPath: path)", "ProcessInfo.processInfo.environment", "let a = unsafe getenv(name)",
            "unsafe setenv(name, value, 1)", "_ = unsafe unsetenv(name)", "let file = FileHandle(forReadingAtPath: path)",
            "let child = Process()", "let path = CommandLine.arguments[0]", "let now = Date()", "let now = Date.now",
            "let now: Date = .now",
            "let start = ContinuousClock.now", "let start = DispatchTime.now()", "unsafe clock_gettime(CLOCK_MONOTONIC, &time)",
            "let end = keychain_monotonic_nanoseconds()", "let number = unsafe open(path, O_RDONLY)", "if read(number, buffer, 1) < 0 {}",
            "_ = unsafe stat(path, &status)", "Foundation.exit(1)", "Glibc.write(1, bytes, count)",
            "let text = try String(contentsOfFile: path)",
            "let data = try Data(contentsOf: url)", "try data.write(to: url)", "Thread.sleep(forTimeInterval: 1)", "print(secret)",
        ].flatMap { code in
            ["KeychainCore", "KeychainEngine", "ValetCLI"].map { [SourceFile(path: "Sources/\($0)/A.swift", text: code)] }
        } + [
            // A method of another target does not hide a function of the C library.
            [
                SourceFile(path: "Sources/Keybag/A.swift", text: "func open() {}"),
                SourceFile(path: "Sources/KeychainEngine/A.swift", text: "let number = unsafe open(path, 0)"),
            ]
        ],
        passed: [
            [SourceFile(path: "Sources/KeychainSystem/A.swift", text: "let a = unsafe getenv(name)\nlet now = Date()")],
            [SourceFile(path: "Tests/ValetTests/A.swift", text: "let a = FileManager.default")],
            [SourceFile(path: "Sources/Valet/A.swift", text: "// FileManager.default\nlet a = \"getenv(\"")],
            [SourceFile(path: "Sources/Valet/A.swift", text: "try store.open(a)\nlet b = Date(timeIntervalSinceReferenceDate: 1)")],
            [SourceFile(path: "Sources/Valet/A.swift", text: "CurrentProcess.exit(with: 1)\nlet process: PipedProcess\nclock.now()")],
            [
                SourceFile(
                    path: "Sources/KeychainCore/A.swift", text: "func open(_ row: Row, _ read: () -> Void) {}\nlet write: (Int) -> Void"),
                SourceFile(
                    path: "Sources/KeychainCore/B.swift", text: "let opened = open(row)\nwrite(1)\nread()\nbytes.append(contentsOf: a)"),
            ],
            [SourceFile(path: "Sources/Locksmith/Locksmith.swift", text: "Bundle.main.bundleIdentifier")],
        ],
        violations: { files in
            let sources = files.filter { $0.isSource && $0.target != "KeychainSystem" }
            return Dictionary(grouping: sources) { $0.target }.values.flatMap { files in
                let names = files.map { (file: $0, names: $0.namesOfTheSystem) }
                // A call by a name that the target declares, without a receiver, calls the method or closure.
                let declared = Set(names.flatMap { $0.names }.filter { $0.isDeclaration }.map { $0.name })
                return names.flatMap { file, names in
                    names.filter { $0.isUse(where: declared) && systemExceptions[file.path]?[$0.name] == nil }
                        .map { file.violation(line: $0.line, "uses \($0.name) past KeychainSystem") }
                }
            }
        }
    ),
]

/// An occurrence of a name that may stand for a part of the operating system.
private struct SystemName {
    let name: String
    /// The index of the line.
    let line: Int
    /// The word before, and whether a dot is between the two.
    let previous: String
    let isMember: Bool
    /// The code after the name, on the same line.
    let after: Substring

    /// Whether this declares a function, a variable, or a closure parameter of the name.
    var isDeclaration: Bool {
        !isMember && (["func", "let", "var"].contains(previous) || after.hasPrefix(": (") || after.hasPrefix(": @escaping"))
    }

    func isUse(where declared: Set<String>) -> Bool {
        let isQualified = isMember && ["Foundation", "FoundationEssentials", "Glibc", "Darwin", "Dispatch"].contains(previous)
        switch name {
        // The current time.
        case "Date": return after.hasPrefix("()") || after.hasPrefix(".now") || after.hasPrefix(" = .now")
        case "Thread": return after.hasPrefix(".sleep")
        // Files that are read and written by URL.
        case "contentsOf": return after.hasPrefix(": url") || after.hasPrefix(": URL")
        case "write" where isMember && !isQualified: return after.hasPrefix("(to: url") || after.hasPrefix("(to: URL")
        case "contentsOfFile": return true
        default: break
        }
        guard !isMember || isQualified, !["func", "import", "case", "let", "var"].contains(previous) else { return false }
        if systemNames.contains(name) { return !after.hasPrefix(":") }
        return after.hasPrefix("(") && (isQualified || !declared.contains(name))
    }
}

extension SourceFile {
    fileprivate var namesOfTheSystem: [SystemName] {
        var found: [SystemName] = []
        for (index, line) in code.enumerated() {
            let bytes = line.utf8
            var previous: Substring = ""
            var position = bytes.startIndex
            while let start = bytes[position...].firstIndex(where: isNameByte) {
                let end = bytes[start...].firstIndex { !isNameByte($0) } ?? bytes.endIndex
                let word = line[start..<end]
                if soughtNames.contains(String(word)) {
                    found.append(
                        SystemName(
                            name: String(word), line: index, previous: String(previous),
                            isMember: bytes[..<start].last == UInt8(ascii: "."),
                            after: line[end...]))
                }
                previous = word
                position = end
            }
        }
        return found
    }
}

private let soughtNames = systemNames.union(systemFunctions).union(["Date", "Thread", "contentsOf"])

private func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "_"):
        true
    default: false
    }
}
