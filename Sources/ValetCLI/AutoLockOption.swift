// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainCore

/// Auto-lock as it is written on the command line: `15m`, `none`.
struct AutoLockOption: ExpressibleByArgument {
    let autoLock: AutoLock

    private static let secondsOfUnit: [Character: UInt32] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]

    init?(argument: String) {
        if argument == "none" {
            autoLock = .never
            return
        }
        // A number without a unit could mean seconds or minutes: it is not guessed.
        guard let unit = argument.last.flatMap({ Self.secondsOfUnit[$0] }), argument.utf8.first != UInt8(ascii: "+"),
            let number = UInt32(argument.dropLast()), number > 0
        else { return nil }
        let (seconds, isTooLong) = number.multipliedReportingOverflow(by: unit)
        guard !isTooLong else { return nil }
        autoLock = .after(seconds: seconds)
    }

    init(_ autoLock: AutoLock) {
        self.autoLock = autoLock
    }
}

extension AutoLock {
    /// In words, such as "locks itself after 15 minutes without use".
    var phrase: String {
        guard let seconds else { return "stays so until `valet lock` or a restart" }
        let units: [(seconds: UInt32, name: String)] = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")]
        // The largest unit that tells it exactly.
        let unit = units.first { seconds.isMultiple(of: $0.seconds) } ?? (1, "second")
        let number = seconds / unit.seconds
        return "locks itself after \(number) \(unit.name)\(number == 1 ? "" : "s") without use"
    }
}
