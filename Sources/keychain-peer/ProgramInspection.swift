// SPDX-License-Identifier: Apache-2.0
internal import KeychainPeers
internal import KeychainSystem

extension ProgramFacts {
    /// Finds out what can be found out about a process and the program that it executes.
    ///
    /// What is said about the number is about the process only as long as it has not ended. The path and the files are those that this process
    /// sees.
    init(ofProcess id: Int32) {
        self.init()
        let directory = "/proc/\(id)"
        if let text = ProcessFile("\(directory)/status").text, let tracer = ProcessFile.field("TracerPid:", in: text) {
            isTraced = tracer != "0"
        }
        isOutsideOfContainers = Self.isOutsideOfContainers(directory)
        sandbox = Self.sandbox(directory, isOutsideOfContainers: isOutsideOfContainers)
        // Before anything that the program can make slow: without an answer in time, it would not be known that it is in a sandbox.
        guard sandbox == nil else { return }
        let file = "\(directory)/exe"
        guard let executed = try? FileStatus(of: file, followsLinks: true), let path = try? FileSystem.target(ofSymbolicLink: file) else {
            return
        }
        executedFile = File(executed)
        isFileOfRoot = executed.isChangeableByRootOnly && executed.kind == .regularFile
        isOnMountOfUser = try? FileSystem.isOnMountOfUser(file)
        self.path = path
        fileAtPath = (try? FileStatus(of: path)).map(File.init)
        areDirectoriesOfRoot = Self.areDirectoriesOfRoot(to: path)
        if let mappings = ProcessFile("\(directory)/maps").bytes {
            isMappedCodeOfRoot = Self.isCodeOfRoot(mappings, of: executed, at: path, inRoot: "\(directory)/root")
        }
    }

    /// Whether the process is in the user namespace of this one, and has the same root directory.
    private static func isOutsideOfContainers(_ directory: String) -> Bool? {
        guard let user = try? FileStatus(of: "\(directory)/ns/user", followsLinks: true),
            let ownUser = try? FileStatus(of: "/proc/self/ns/user", followsLinks: true),
            let root = try? FileStatus(of: "\(directory)/root", followsLinks: true), let ownRoot = try? FileStatus(of: "/")
        else { return nil }
        return user.identity == ownUser.identity && root.identity == ownRoot.identity
    }

    private static func sandbox(_ directory: String, isOutsideOfContainers: Bool?) -> Sandbox? {
        let path = "\(directory)/root/.flatpak-info"
        // Not through a symbolic link, which would lead to a file of the machine.
        if let file = try? FileStatus(of: path) {
            // A device, or a pipe, could keep this process waiting.
            guard file.kind == .regularFile, let bytes = ProcessFile(path).bytes else { return .unnamed }
            return Sandbox(flatpakInformation: bytes)
        }
        // Programs of a snap with classic confinement are in no sandbox.
        guard isOutsideOfContainers == false, let groups = ProcessFile("\(directory)/cgroup").bytes else { return nil }
        return Sandbox(controlGroups: groups)
    }

    private static func areDirectoriesOfRoot(to path: String) -> Bool? {
        var directory = path
        while directory != "/" {
            directory = FileSystem.parent(of: directory)
            guard directory.hasPrefix("/"), let status = try? FileStatus(of: directory) else { return nil }
            guard status.kind == .directory, status.isChangeableByRootOnly else { return false }
        }
        return true
    }

    /// Whether the files of all mapped code, in the bytes of /proc/PID/maps, are files that only root can change.
    ///
    /// `executed` is the file of the program. Each file must be the one that this process sees at its path, and none may be on a file system that a
    /// user has mounted; `root` is the root directory as the process of the mappings sees it. Source: proc_pid_maps(5).
    static func isCodeOfRoot(_ mappings: [UInt8], of executed: FileStatus, at path: String, inRoot root: String) -> Bool {
        var mapped: Set<Mapping> = []
        for line in mappings.split(separator: UInt8(ascii: "\n")) where Mapping.isCode(line) {
            guard let mapping = Mapping(line) else { return false }
            // Memory without a file, and the kernel's own code, have no inode.
            if mapping.inode != 0 { mapped.insert(mapping) }
        }
        // Some file systems show other numbers of their devices here than to stat(2), the same one for all files of a device.
        let ownDevice = mapped.first { $0.path == path && $0.inode == executed.identity.inode }?.device
        // The program itself is mapped.
        return !mapped.isEmpty
            && mapped.allSatisfy { mapping in
                guard let status = try? FileStatus(of: mapping.path), (try? FileSystem.isOnMountOfUser(root + mapping.path)) == false else {
                    return false
                }
                let device = status.identity.device == executed.identity.device ? ownDevice : status.identity.device
                return status.kind == .regularFile && status.isChangeableByRootOnly && status.identity.inode == mapping.inode
                    && device == mapping.device
            }
    }

    /// A line of /proc/PID/maps.
    private struct Mapping: Hashable {
        let device: UInt64
        let inode: UInt64
        let path: String

        /// Whether the memory can be executed, or the line is no mapping; most lines are none of both.
        static func isCode(_ line: ArraySlice<UInt8>) -> Bool {
            guard let space = line.firstIndex(of: UInt8(ascii: " ")), space + 3 < line.endIndex else { return true }
            return line[space + 3] != UInt8(ascii: "-")
        }

        /// Returns nil if the line is no mapping.
        init?(_ line: ArraySlice<UInt8>) {
            let words = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            guard words.count >= 5, words[1].count == 4 else { return nil }
            let text = words[3...].map { String(decoding: $0, as: UTF8.self) }
            let numbers = text[0].split(separator: ":").compactMap { UInt64($0, radix: 16) }
            guard let inode = UInt64(text[1]), numbers.count == 2 else { return nil }
            // As makedev(3) does it.
            let (major, minor) = (numbers[0], numbers[1])
            device = (major & 0xFFF) << 8 | (major & ~0xFFF) << 32 | minor & 0xFF | (minor & ~0xFF) << 12
            self.inode = inode
            path = text.count > 2 ? String(text[2].drop { $0 == " " }) : ""
        }
    }
}

extension ProgramFacts.File {
    fileprivate init(_ status: FileStatus) { self.init(device: status.identity.device, inode: status.identity.inode) }
}

extension FileStatus {
    /// Whether no user but root can change the file, or the names in the directory.
    fileprivate var isChangeableByRootOnly: Bool { owner == 0 && permissions & 0o022 == 0 }
}
