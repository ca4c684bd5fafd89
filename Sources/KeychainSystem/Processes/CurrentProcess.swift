// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc

/// Facts about this process.
package enum CurrentProcess {
    // MARK: Identity

    package static var id: Int32 { getpid() }
    package static var effectiveUserID: UInt32 { geteuid() }
    package static var effectiveGroupID: UInt32 { getegid() }
    package static var realGroupID: UInt32 { getgid() }

    /// Makes this process, which is root's, one of a user for good, with that user's primary group, no other groups, and home directory.
    ///
    /// Call it while there is one thread, because it changes the environment. Throws `.notFound` if the machine does not know the user.
    package static func become(user: UInt32) throws(Errno) {
        guard let group = try UserDatabase.primaryGroup(ofUser: user) else { throw .notFound }
        // For root these change the real, the effective, and the saved identity. The C library does it in all threads.
        guard setgroups(0, nil) == 0, setgid(group) == 0, setuid(user) == 0 else { throw .current }
        try ProcessEnvironment.useHomeOfEffectiveUser()
    }

    /// The path of the program; the name by which it was started if /proc is not mounted; nil without either.
    ///
    /// Ends in " (deleted)" if the program's file was replaced while it runs. The caller chooses the name, so a privileged process does not
    /// use it.
    package static var executablePath: String? {
        if let path = try? FileSystem.target(ofSymbolicLink: "/proc/self/exe") { return path }
        return ProcessEnvironment.isPrivileged ? nil : ProcessArguments.text(at: 0)
    }

    /// The name of the machine, without a domain; nil if it has none.
    package static var hostName: String? {
        // POSIX permits 255 bytes.
        var bytes = [CChar](repeating: 0, count: 256)
        // The last byte stays zero, so the name always ends.
        guard unsafe gethostname(&bytes, bytes.count - 1) == 0 else { return nil }
        let name = bytes.prefix { $0 != 0 && $0 != CChar(UInt8(ascii: ".")) }
        return name.isEmpty ? nil : String(decoding: name.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Ends the process.
    package static func exit(with status: Int32) -> Never { Glibc.exit(status) }

    /// Makes writing to a pipe without a reader fail with an error instead of ending the process.
    package static func ignoreBrokenPipeSignal() {
        _ = signal(SIGPIPE, SIG_IGN)
    }

    /// Raises the number of files that this process may have open to the limit that it was given; best effort.
    package static func raiseDescriptorLimit() {
        var limits = rlimit()
        // The pointers are used during the calls only.
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0 else { return }
        limits.rlim_cur = limits.rlim_max
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits)
    }

    // MARK: User namespaces

    /// Whether this process is in the machine's initial user namespace; each namespace has its own keyrings.
    ///
    /// False if it cannot be determined, because less can be assumed then.
    package static let isInInitialUserNamespace = isInInitialUserNamespace(uidMap: uidMap())

    /// Whether a map is that of the initial user namespace, which alone maps every user to the same user: "0 0 4294967295".
    package static func isInInitialUserNamespace(uidMap: String?) -> Bool {
        uidMap?.split(whereSeparator: \.isWhitespace) == ["0", "0", "4294967295"]
    }

    private static func uidMap() -> String? {
        do throws(Errno) {
            let file = try OpenFile("/proc/self/uid_map", .read)
            return try file.descriptor.readToEnd(byteLimit: 4_096).map { String(decoding: $0, as: UTF8.self) }
        } catch {
            return nil
        }
    }

    /// Returns the memory that the allocator keeps for later to the system.
    package static func returnFreeMemory() { keychain_memory_return_free() }
}
