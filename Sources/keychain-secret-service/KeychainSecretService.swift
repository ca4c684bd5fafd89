// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainSystem
internal import SecretService

/// The program `keychain-secret-service`: the keychain as the keyring of a desktop, on the message bus of the session.
///
/// With `--import` it copies the items of the present keyring into the keychain instead, and with `--check` it only finds out whether the
/// keychain can be a keyring now.
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
            default: fail("usage: keychain-secret-service [--import | --check]", status: 64)
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

    private static func serve() throws(KeychainFailure) {
        let configuration = try KeychainConfiguration.fromEnvironment()
        guard let keychain = try DefaultKeychain.current() as? any SecretServiceBridge.ServedKeychain else {
            throw KeychainFailure(.unimplemented, "this keychain cannot be a keyring")
        }
        let bridge = try SecretServiceBridge(keychain) { interruption in
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
