// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Foundation
internal import Glibc
internal import KeychainEngine
internal import KeychainTPM
internal import KeychainTestSupport
package import Testing

/// Conditions of tests on the system they run on. A test whose condition does not hold is skipped, and the report says why.
extension Trait where Self == ConditionTrait {
    /// The build has the package trait TPM.
    package static var requiresTPM: Self { .enabled(if: TPMDevice.isBuilt, "requires a build with the package trait TPM") }

    /// The build does not have the package trait TPM.
    package static var requiresBuildWithoutTPM: Self { .disabled(if: TPMDevice.isBuilt, "requires a build without the package trait TPM") }

    /// etcd, etcdctl, and openssl are installed.
    package static var requiresEtcd: Self { .enabled(if: TestRequirement.etcd, "requires etcd, etcdctl, and openssl") }

    /// strace is installed and may trace child processes.
    package static var requiresStrace: Self { .enabled(if: TestRequirement.strace, "requires strace") }

    /// bubblewrap is installed, and can make a sandbox.
    package static var requiresSandbox: Self { .enabled(if: TestRequirement.sandbox, "requires bubblewrap") }

    /// keyctl is installed, and the kernel's keyring can hold keys.
    package static var requiresKeyctl: Self {
        .enabled(if: TestRequirement.kernelKeyring && TestRequirement.keyctl, "requires keyctl and the kernel's keyring")
    }

    /// The kernel's keyring can hold keys.
    package static var requiresKernelKeyring: Self { .enabled(if: TestRequirement.kernelKeyring, "requires the kernel's keyring") }

    /// This process may create user namespaces, and the kernel's keyring can hold keys.
    package static var requiresUserNamespaces: Self {
        .enabled(if: TestRequirement.kernelKeyring && TestRequirement.userNamespaces, "requires user namespaces and the kernel's keyring")
    }

    /// The tests run as root.
    package static var requiresRoot: Self { .enabled(if: geteuid() == 0, "requires root") }

    /// The tests run as root, may create mount namespaces, and can install setuid programs in the temporary directory.
    package static var requiresSetuidPrograms: Self {
        .enabled(
            if: TestRequirement.setuidPrograms && !TestRequirement.isSystemService,
            "requires root, unshare, setpriv, a temporary directory without nosuid, and another process than a service of the system")
    }

    /// The tests run as root, and may create mount namespaces with file systems of their own.
    package static var requiresMounts: Self { .enabled(if: TestRequirement.mounts, "requires root, and mounting") }

    /// The headers of PAM are installed.
    package static var requiresPAM: Self {
        .enabled(
            if: FileManager.default.fileExists(atPath: "/usr/include/security/pam_modules.h"), "requires the headers of PAM, libpam0g-dev")
    }

    /// The headers of libsystemd, a message bus, and python-dbusmock are installed.
    package static var requiresLogindMock: Self {
        .enabled(if: TestRequirement.logindMock, "requires libsystemd-dev, dbus-daemon, and python3-dbusmock")
    }

    /// A message bus, and the programs that call services on one, are installed.
    package static var requiresMessageBus: Self {
        .enabled(if: TestRequirement.messageBus, "requires dbus-daemon, gdbus, and secret-tool")
    }

    /// GNOME Keyring is installed.
    package static var requiresGNOMEKeyring: Self {
        .enabled(
            if: FileManager.default.isExecutableFile(atPath: "/usr/bin/gnome-keyring-daemon"), "requires gnome-keyring-daemon")
    }

    /// KWallet is installed, with the plugin by which it receives secrets.
    package static var requiresKWallet: Self {
        let plugins = ["x86_64", "aarch64"].map { "/usr/lib/\($0)-linux-gnu/qca-qt5/crypto/libqca-ossl.so" }
        let isInstalled =
            FileManager.default.isExecutableFile(atPath: "/usr/bin/kwalletd5") && plugins.contains(where: FileManager.default.fileExists)
        return .enabled(if: isInstalled, "requires kwalletd5 and libqca-qt5-2-plugins")
    }

    /// KeePassXC is installed.
    package static var requiresKeePassXC: Self {
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/keepassxc"), "requires keepassxc")
    }

    /// The tests do not run as root.
    package static var requiresOrdinaryUser: Self { .enabled(if: geteuid() != 0, "requires an ordinary user") }
}

/// Each condition is checked once.
private enum TestRequirement {
    static let kernelKeyring = KernelKeyHolder.isPossible
    static let logindMock =
        succeeds("dbus-daemon", "--version") && succeeds("/usr/bin/python3", "-c", "import dbusmock, gi")
        && FileManager.default.fileExists(atPath: "/usr/include/systemd/sd-bus.h")
    static let messageBus =
        succeeds("dbus-daemon", "--version") && succeeds("gdbus", "help")
        && FileManager.default.isExecutableFile(atPath: "/usr/bin/secret-tool")
    static let strace = succeeds("strace", "-o", "/dev/null", "true")
    static let sandbox = succeeds("bwrap", "--unshare-user", "--ro-bind", "/", "/", "true")
    static let etcd = succeeds("etcd", "--version") && succeeds("etcdctl", "version") && succeeds("openssl", "version")
    static let keyctl = succeeds("keyctl", "--version")
    static let userNamespaces = succeeds("unshare", "-Ur", "true")

    /// keychaind would give the programs of the tests the identity of the service.
    static let isSystemService =
        FileManager.default.contents(atPath: "/proc/self/cgroup").map { String(decoding: $0, as: UTF8.self).contains(":/system.slice/") }
        ?? false

    static let mounts = geteuid() == 0 && succeeds("unshare", "-m", "mount", "-t", "tmpfs", "none", "/run")

    static let setuidPrograms: Bool = {
        var facts = statvfs()
        // `facts` is a local variable and outlives the call.
        guard geteuid() == 0, unsafe statvfs(FileManager.default.temporaryDirectory.path, &facts) == 0,
            facts.f_flag & UInt(ST_NOSUID) == 0
        else { return false }
        return succeeds("unshare", "-m", "mount", "--bind", "/etc/passwd", "/etc/passwd") && succeeds("setpriv", "--version")
    }()

    private static func succeeds(_ program: String, _ arguments: String...) -> Bool {
        (try? ChildProcess.run(program, arguments, environment: ["PATH": "/usr/bin:/bin"]).ending) == .exited(0)
    }
}

/// Runs blocking tests on threads of their own, so that other tests continue and results are reported immediately.
///
/// Swift's cooperative pool has one thread for each processor. A test that blocks one of them delays all other tests.
package struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
    let executor: BlockingTestExecutor

    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(executor) { try await function() }
    }
}

extension Trait where Self == BlockingTrait {
    /// The tests wait for child processes, flushes, or locks.
    package static var blocking: Self { Self(executor: .shared) }

    /// The tests mostly wait until a time has passed: for the deadline of a prompt, or for the kernel's keyring.
    package static var waitsForClock: Self { Self(executor: .waitingForClock) }
}
#endif
