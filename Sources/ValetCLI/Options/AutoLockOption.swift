// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

/// The time of inactivity after which the keychain locks itself, as on the command line: `15m`, `none`.
struct AutoLockOption {
    let autoLock: AutoLock

    private static let secondsOfUnit: [Character: UInt32] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]

    init(parsing argument: String) throws(ValidationError) {
        if argument == "none" {
            autoLock = .never
            return
        }
        // A number without a unit is ambiguous.
        guard let unit = argument.last.flatMap({ Self.secondsOfUnit[$0] }) else {
            throw ValidationError("Give a whole number and a unit (s, m, h, or d), such as 15m, or `none`.")
        }
        let digits = argument.dropLast()
        guard !digits.isEmpty, digits.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else {
            throw ValidationError("Give a whole number before the unit, such as 15m, or `none`.")
        }
        guard let number = UInt32(digits) else { throw Self.tooLong }
        guard number > 0 else { throw ValidationError("The minimum is 1s.") }
        let (seconds, isTooLong) = number.multipliedReportingOverflow(by: unit)
        guard !isTooLong else { throw Self.tooLong }
        autoLock = .after(seconds: seconds)
    }

    private static let tooLong = ValidationError("The maximum is 49710d. Use `none` to disable automatic locking.")
}

extension AutoLock {
    /// A phrase for messages, such as "locks automatically after 15 minutes of inactivity".
    var phrase: String {
        guard let seconds else { return "stays unlocked until `valet lock` or a restart" }
        let units: [(seconds: UInt32, name: String)] = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")]
        // The largest unit of which the time is a multiple.
        let unit = units.first { seconds.isMultiple(of: $0.seconds) } ?? (1, "second")
        let number = seconds / unit.seconds
        return "locks automatically after \(number) \(unit.name)\(number == 1 ? "" : "s") of inactivity"
    }
}

/// The option that sets how long an unlock lasts.
struct UnlockTimeOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Lock after this period of inactivity: a number with s, m, h, or d, such as 15m (maximum 49710d), or none. (default: 15m)",
            valueName: "time"),
        transform: AutoLockOption.init(parsing:))
    var timeout: AutoLockOption?

    var autoLock: AutoLock { timeout?.autoLock ?? .standard }
}
