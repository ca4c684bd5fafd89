// SPDX-License-Identifier: Apache-2.0

/// The keychain as a valet sees it whose values a person has to release.
struct EnclaveKeychain: Sendable {
    let values: SandboxedKeychain
    /// Holds the canary: an item of the same class that anybody may read while it is unlocked, so that looking asks nobody.
    private let canary: SandboxedKeychain
    private let accessControl: SecureEnclaveAccessControl

    init(name: SandboxName, sandbox: Sandbox, accessControl: SecureEnclaveAccessControl) {
        values = SandboxedKeychain(sandbox: sandbox)
        canary = SandboxedKeychain(
            sandbox: Sandbox(name: name, kind: .local, protection: Accessibility.whenPasscodeSetThisDeviceOnly))
        self.accessControl = accessControl
    }

    /// Whether values can be stored now, and read by whoever shows to be the right person.
    func isAccessible() -> Bool {
        (!accessControl.needsBiometry || PlatformRules.hasBiometry()) && canary.isAccessible()
    }

    /// Brings items into the valet.
    func migration(from source: MigrationQuery) -> Migration {
        Migration(source: source, destination: values, undoing: .once(""))
    }
}
