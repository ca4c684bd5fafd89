// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainSystem
internal import SecretService

/// The program `keychain-secret-service`: the keychain as the keyring of a desktop, on the message bus of the session.
///
/// With `--import` it copies the items of the present keyring into the keychain instead.
///
/// It ends with status 1 if another program is the keyring, if the bus is lost, and in a build without the package trait `SecretService`: a
/// program that the bus has started must not let its callers wait.
@main
enum KeychainSecretService {
    static func main() {
        #if SecretService && !canImport(Darwin)
        ProcessHardening.apply()
        CurrentProcess.ignoreBrokenPipeSignal()
        let imports = ProcessArguments.count == 2 && ProcessArguments.text(at: 1) == "--import"
        guard imports || ProcessArguments.count == 1 else { fail("usage: keychain-secret-service [--import]", status: 64) }
        do throws(KeychainFailure) {
            if imports { try importItems() } else { try serve() }
        } catch {
            fail("keychain-secret-service: \(error.reason)", status: 1)
        }
        #else
        fail("keychain-secret-service: this build does not have the package trait SecretService", status: 1)
        #endif
    }

    #if SecretService && !canImport(Darwin)
    /// Copies the items of the present keyring, and prints how many.
    private static func importItems() throws(KeychainFailure) {
        let outcome = try KeyringImport.run(into: try DefaultKeychain.current())
        let text = "copied: \(outcome.copiedCount)\npresent: \(outcome.presentCount)\n"
        try? FileDescriptor.standardOutput.writeAll(text.utf8)
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
