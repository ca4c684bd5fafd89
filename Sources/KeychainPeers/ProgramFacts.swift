// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// What keychain-peer has found out about the program that a process executes.
///
/// A fact that could not be found out is nil, and never raises the level of assurance. Paths are those of the machine, not of a mount namespace.
package struct ProgramFacts: Hashable, Sendable {
    /// A file, whatever its name.
    package struct File: Hashable, Sendable {
        package var device: UInt64
        package var inode: UInt64

        package init(device: UInt64, inode: UInt64) {
            self.device = device
            self.inode = inode
        }
    }

    /// The file that the process executes.
    package var executedFile: File?
    /// The path of the executed file, as the process sees it.
    package var path: String?
    /// The file at that path, as the machine sees it.
    package var fileAtPath: File?
    /// Whether the executed file is a regular file that only root can change.
    package var isFileOfRoot: Bool?
    /// Whether only root can change the directories that lead to it.
    package var areDirectoriesOfRoot: Bool?
    /// Whether the executed file is on a file system that an ordinary user has mounted, or might have.
    package var isOnMountOfUser: Bool?
    /// Whether the process is in the machine's user namespace, and has its root directory.
    package var isOutsideOfContainers: Bool?
    /// Whether another process traces this one.
    package var isTraced: Bool?
    /// Whether all code that is mapped from files is in files that only root can change, that no user has mounted, and that the machine sees at the
    /// same paths.
    package var isMappedCodeOfRoot: Bool?
    /// The sandbox in which the process is; nil if none was found.
    package var sandbox: Sandbox?

    package init() {}

    /// Why a program has no identity of its own.
    package enum Unverified: Error, Hashable, Sendable {
        case unknown, interpreter, changeable, otherFile, traced, loadsCode, container, sandbox
    }

    /// Returns the path that identifies the program.
    package func verifiedPath() throws(Unverified) -> String {
        guard sandbox == nil else { throw .sandbox }
        guard let executedFile, let path else { throw .unknown }
        guard fileAtPath == executedFile else { throw .otherFile }
        try Self.require(isOutsideOfContainers, or: .container)
        try Self.require(isFileOfRoot, or: .changeable)
        try Self.require(areDirectoriesOfRoot, or: .changeable)
        try Self.require(isOnMountOfUser.map { !$0 }, or: .changeable)
        guard !Interpreters.contains(path) else { throw .interpreter }
        try Self.require(isTraced.map { !$0 }, or: .traced)
        try Self.require(isMappedCodeOfRoot, or: .loadsCode)
        return path
    }

    /// Whether a program with this path can be identified by it: the path is the shortest one, and not that of an interpreter.
    package static func canIdentify(_ path: String) -> Bool {
        let components = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        return !components.isEmpty && components.allSatisfy { !["", ".", ".."].contains($0) } && !Interpreters.contains(path)
    }

    private static func require(_ fact: Bool?, or reason: Unverified) throws(Unverified) {
        guard let fact else { throw .unknown }
        guard fact else { throw reason }
    }
}

// MARK: Encoding
extension ProgramFacts {
    private static let version: UInt8 = 2
    private static let pathByteCount = 1_024
    private static let sandboxByteCount = 264
    /// The question whether the process still executes the program of the facts.
    package static let confirmation: UInt8 = 2
    /// The byte count of all facts; it does not depend on them.
    package static let encodedByteCount = 1 + 6 + 2 * 17 + 2 + pathByteCount + 1 + 2 + sandboxByteCount

    /// Whether a path can be encoded: absolute, of a certain length, and without characters that change what a terminal shows.
    private static func isEncodable(_ path: String) -> Bool {
        path.utf8.first == UInt8(ascii: "/") && path.utf8.count <= pathByteCount && !path.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }

    private static var answers: [WritableKeyPath<ProgramFacts, Bool?>] {
        [
            \.isFileOfRoot, \.areDirectoriesOfRoot, \.isOnMountOfUser, \.isOutsideOfContainers, \.isTraced, \.isMappedCodeOfRoot,
        ]
    }

    /// The facts in a form of fixed size; a path that does not fit is left out.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = [Self.version]
        for answer in Self.answers { bytes.append(self[keyPath: answer].map { $0 ? 2 : 1 } ?? 0) }
        for file in [executedFile, fileAtPath] {
            bytes.append(file == nil ? 0 : 1)
            bytes.append(littleEndian: file?.device ?? 0)
            bytes.append(littleEndian: file?.inode ?? 0)
        }
        bytes += Self.place(path.flatMap { Self.isEncodable($0) ? $0 : nil } ?? "", byteCount: Self.pathByteCount)
        bytes.append(sandbox == nil ? 0 : 1)
        return bytes + Self.place(sandbox?.accessGroup ?? "", byteCount: Self.sandboxByteCount)
    }

    private static func place(_ text: String, byteCount: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(littleEndian: UInt16(text.utf8.count))
        return bytes + text.utf8 + [UInt8](repeating: 0, count: byteCount - text.utf8.count)
    }

    /// Reads what `place` returns; nil if that never returns it.
    private static func text(from reader: inout ByteReader, byteCount: Int) -> String? {
        guard let count = reader.readUInt16(), let place = reader.readBytes(byteCount) else { return nil }
        guard count <= place.count, place.dropFirst(Int(count)).allSatisfy({ $0 == 0 }) else { return nil }
        return String(validating: place.prefix(Int(count)), as: UTF8.self)
    }

    /// Decodes facts; nil for bytes that `encoded` never returns.
    package init?(decoding bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        guard bytes.count == Self.encodedByteCount, reader.readByte() == Self.version else { return nil }
        self.init()
        for answer in Self.answers {
            switch reader.readByte() {
            case 0: break
            case 1: self[keyPath: answer] = false
            case 2: self[keyPath: answer] = true
            default: return nil
            }
        }
        let files: [WritableKeyPath<ProgramFacts, File?>] = [\.executedFile, \.fileAtPath]
        for file in files {
            guard let isKnown = reader.readByte(), let device = reader.readUInt64(), let inode = reader.readUInt64() else { return nil }
            switch isKnown {
            case 0: guard device == 0, inode == 0 else { return nil }
            case 1: self[keyPath: file] = File(device: device, inode: inode)
            default: return nil
            }
        }
        guard let path = Self.text(from: &reader, byteCount: Self.pathByteCount), path.isEmpty || Self.isEncodable(path) else { return nil }
        self.path = path.isEmpty ? nil : path
        guard let isInSandbox = reader.readByte(), let group = Self.text(from: &reader, byteCount: Self.sandboxByteCount) else {
            return nil
        }
        switch (isInSandbox, group.isEmpty) {
        case (0, true): break
        case (1, true): sandbox = .unnamed
        case (1, false):
            guard let sandbox = Sandbox(accessGroup: group) else { return nil }
            self.sandbox = sandbox
        default: return nil
        }
    }
}

/// Programs whose file says nothing about what they do, because they execute what they are given.
private enum Interpreters {
    /// Names without the versions at their end.
    private static let names: Set<String> = [
        "ash", "awk", "bash", "beam.smp", "bun", "busybox", "csh", "dash", "dart", "deno", "dotnet", "electron", "elvish", "emacs", "env",
        "expect",
        "fish", "gawk", "gdb", "gjs", "gjs-console", "guile", "java", "js", "julia", "ksh", "lldb", "lua", "luajit", "mawk", "mksh", "mono",
        "mono-sgen", "node", "nodejs", "nu", "nvim", "ocamlrun", "octave", "perl", "php", "pwsh", "pypy", "python", "qml", "R", "racket",
        "rbash",
        "ruby", "sbcl", "sh", "sqlite3", "swift-frontend", "tclsh", "tcsh", "toybox", "vim", "wine", "wine-preloader", "wish", "yash",
        "zsh",
    ]
    private static let prefixes = ["emacs-", "ld-", "luajit-", "php", "python3", "qemu-", "valgrind", "vim."]

    static func contains(_ path: String) -> Bool {
        let name = String(path.split(separator: "/").last ?? "")
        // The dynamic linker, and libraries that can be executed.
        if name.contains(".so") || prefixes.contains(where: name.hasPrefix) { return true }
        // "python2.7", "lua5.4", "php8.2", "node-20", "wine64"
        var base = Substring(name)
        while let last = base.last, last.isNumber || last == "." || last == "-" { base.removeLast() }
        return names.contains(name) || names.contains(String(base))
    }
}

extension ProgramFacts.Unverified: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unknown: "not everything about its process could be found out"
        case .interpreter: "its file is an interpreter, which executes what it is given"
        case .changeable: "others than root can change its file, or a directory that leads to it"
        case .otherFile: "its file was replaced while it ran, or is another one for the machine"
        case .traced: "another process traces it"
        case .loadsCode: "it has loaded code from a file that others than root can change, or that was replaced since"
        case .sandbox: "it runs in a sandbox of Flatpak or of a snap"
        case .container: "it runs in a user namespace, or with another root directory"
        }
    }
}
