// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

/// How long an unlock lasts.
struct UnlockTimeOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Lock after so long without use: a number with s, m, h or d, such as 15m, up to 49710d; or none. (default: 15m)",
            valueName: "time"),
        transform: AutoLockOption.init(parsing:))
    var timeout: AutoLockOption?

    var autoLock: AutoLock { timeout?.autoLock ?? .standard }
}
