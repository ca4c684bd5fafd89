// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainIPC
internal import KeychainSystem
internal import SecretService

/// The program `keychain-secret-service`: the keychain as the keyring of a desktop, on the message bus of the session.
///
/// With `--import` it copies the items of the present keyring into the keychain instead, and with `--check` it only finds out whether the
/// keychain can be a keyring now. `--access` prints how programs share their items, and what a person has allowed them; `--revoke` takes that back
/// from a program.
///
/// It ends with status 1 if another program is the keyring, and if the bus is lost; with status 69 (EX_UNAVAILABLE) in a build without the
/// package trait `SecretService`: a program that the bus has started must not let its callers wait.
@main
enum KeychainSecretService {
    static func main() {
        #if SecretService && !canImport(Darwin)
        ProcessHardening.apply()
        CurrentProcess.ignoreBrokenPipeSignal()
        do throws(KeychainFailure) {
            switch (ProcessArguments.count, ProcessArguments.text(at: 1)) {
            case (1, _): try serve()
            case (2, "--import"): try importItems()
            case (2, "--check"): try check()
            case (2, "--access"): try printAccess()
            case (3, "--revoke"): try revokeAccess(of: ProcessArguments.text(at: 2) ?? "")
            default: fail("usage: keychain-secret-service [--import | --check | --access | --revoke <program>]", status: 64)
            }
        } catch {
            fail("keychain-secret-service: \(error.reason)", status: 1)
        }
        #else
        fail("keychain-secret-service: this build does not have the package trait SecretService", status: 69)
        #endif
    }

    #if SecretService && !canImport(Darwin)
    /// Copies the items of the present keyring, and prints how many.
    private static func importItems() throws(KeychainFailure) {
        let outcome = try KeyringImport.run(into: try DefaultKeychain.current())
        let text = "copied: \(outcome.copiedCount)\npresent: \(outcome.presentCount)\n"
        try? FileDescriptor.standardOutput.writeAll(text.utf8)
    }

    /// Throws unless the keychain can be opened, and is unlocked.
    private static func check() throws(KeychainFailure) {
        guard let keychain = try DefaultKeychain.current() as? any SecretServiceBridge.ServedKeychain else {
            throw KeychainFailure(.unimplemented, "this keychain cannot be a keyring")
        }
        guard try keychain.sessionStatus().state == .unlocked else {
            throw KeychainFailure(.interactionNotAllowed, "the keychain is locked: run `valet unlock`", cause: .locked)
        }
    }

    /// Prints the mode, and a line for each grant; the fields have tabs between them.
    private static func printAccess() throws(KeychainFailure) {
        let keychain = try DefaultKeychain.current()
        let access = KeychaindAccess(keychain)
        let mode = try access.current()?.mode ?? .open
        let grants = try access.isRegistered() ? GrantStorage(keychain).list() : []
        let lines = ["mode\t\(mode.rawValue)"] + grants.map { "grant\t\($0.program)\t\($0.owner)" }
        try? FileDescriptor.standardOutput.writeAll(lines.map { $0 + "\n" }.joined().utf8)
    }

    private static func revokeAccess(of program: String) throws(KeychainFailure) {
        let keychain = try DefaultKeychain.current()
        guard try KeychaindAccess(keychain).isRegistered() else {
            throw KeychainFailure(.itemNotFound, "programs are not told apart here, and nothing was allowed")
        }
        try GrantStorage(keychain).revoke(program)
    }

    private static func serve() throws(KeychainFailure) {
        let configuration = try KeychainConfiguration.fromEnvironment()
        guard let keychain = try DefaultKeychain.current() as? any SecretServiceBridge.ServedKeychain else {
            throw KeychainFailure(.unimplemented, "this keychain cannot be a keyring")
        }
        let bridge = try SecretServiceBridge(keychain, KeychaindAccess(keychain)) { interruption in
            SystemPresencePrompter(configuration.pinentry, environment: configuration.promptEnvironment, interruption: interruption)
        }
        let stop = bridge.stop
        let signals = TerminationSignals { _ in stop() }
        defer { withExtendedLifetime(signals) {} }
        try bridge.run { ServiceManager.notifyReady() }
    }
    #endif

    private static func fail(_ reason: String, status: Int32) -> Never {
        try? FileDescriptor.standardError.writeAll("\(reason)\n".utf8)
        CurrentProcess.exit(with: status)
    }
}

#if SecretService && !canImport(Darwin)
extension DaemonKeychain: ProgramIdentifying {}

/// Lets keychaind tell programs apart, where it keeps the keychain, and gives the items of this program to no other one.
///
/// Otherwise other programs of the user can read the items without the bus, and rights on the bus would pretend.
private final class KeychaindAccess: ProgramAccess {
    private let keychain: UserKeychain?
    private var known: (kept: DaemonKeychain, isRegistered: Bool)?

    init(_ keychain: any Keychain) { self.keychain = keychain as? UserKeychain }

    /// Whether root has registered this program, and keychaind keeps the keychain.
    func isRegistered() throws(KeychainFailure) -> Bool { try registeredKeychain() != nil }

    private func registeredKeychain() throws(KeychainFailure) -> DaemonKeychain? {
        guard let kept = try keychain?.keptKeychain() else { return nil }
        if let known, known.kept === kept { return known.isRegistered ? kept : nil }
        let isRegistered = try kept.identity().accessGroups.contains(where: GrantStorage.accessGroup.hasSameBytes)
        known = (kept, isRegistered)
        return isRegistered ? kept : nil
    }

    func current() throws(KeychainFailure) -> SeparatedAccess? {
        guard let kept = try registeredKeychain() else { return nil }
        let mode = try AccessMode.configured()
        return mode == .open ? nil : SeparatedAccess(mode, kept)
    }
}
#endif
