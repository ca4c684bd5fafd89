// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import KeychainTestSupport

/// The kernel's own program for keyrings, beside the code that is tested.
enum KernelKeyringTool {
    /// Why no process here sees what another one unlocked; nil: it does.
    static let keyringObstacle: String? =
        KeyHolderSelection.automatic.kindForNewStore == .processMemory ? "the kernel's keyring cannot be used here" : nil

    /// Why this cannot be used; nil: it can.
    static let obstacle: String? = {
        if let keyringObstacle { return keyringObstacle }
        guard let run = try? run(["--version"]), run.isSuccess else { return "keyctl is not installed: make install-dependencies" }
        return nil
    }()

    static func run(_ arguments: [String]) throws -> (isSuccess: Bool, output: String) {
        let run = try ChildProcess.run("keyctl", arguments, environment: ["PATH": "/usr/bin:/bin"])
        return (run.ending == .exited(0), run.output)
    }
}
