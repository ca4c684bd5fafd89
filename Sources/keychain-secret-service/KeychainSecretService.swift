// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainSystem
internal import SecretService

/// The program `keychain-secret-service`: the keychain as the keyring of a desktop, on the message bus of the session.
///
/// It ends with status 1 if another program is the keyring, if the bus is lost, and in a build without the package trait `SecretService`: a
/// program that the bus has started must not let its callers wait.
@main
enum KeychainSecretService {
    static func main() {
        #if SecretService && !canImport(Darwin)
        ProcessHardening.apply()
        CurrentProcess.ignoreBrokenPipeSignal()
        guard ProcessArguments.count == 1 else { fail("usage: keychain-secret-service", status: 64) }
        do throws(KeychainFailure) {
            try run()
        } catch {
            fail("keychain-secret-service: \(error.reason)", status: 1)
        }
        #else
        fail("keychain-secret-service: this build does not have the package trait SecretService", status: 1)
        #endif
    }

    #if SecretService && !canImport(Darwin)
    private static func run() throws(KeychainFailure) {
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
