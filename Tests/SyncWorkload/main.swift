// SPDX-License-Identifier: Apache-2.0
import Foundation

/// `SyncWorkload COMMAND ROOT …`: what `Scripts/sync-real.sh` runs on the devices of one circle, and what it demands at the end.
///
/// ROOT has for each device N a keychain `device-N`, a log of its writes `log-N`, and the shared folder `folder-N`, which something else keeps
/// equal to those of the other devices. If it has a file `location`, the devices share the cluster that it names instead.
let usage = """
    usage: SyncWorkload circle ROOT                     makes the three keychains and their circle
           SyncWorkload write ROOT DEVICE SEED COUNT    writes until the device's log has COUNT acknowledged writes
           SyncWorkload agent ROOT DEVICE SECONDS       synchronizes until it is killed, with a clock that is ahead
           SyncWorkload settle ROOT DEVICE SECONDS      synchronizes until nothing is left to do, with a clock that is ahead
           SyncWorkload compare ROOT                    compares the devices with each other and with the logs
           SyncWorkload measure ROOT ITEMS              measures two devices with one folder
           SyncWorkload delay ROOT ITEMS COUNT          measures the time from a write to the value on another device, COUNT times
           SyncWorkload cpu ROOT ITEMS                  measures the processor time of a change for the agent that sends it
           SyncWorkload fleet ROOT MACHINES             measures a writer and machines that share one credential
    """

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count > 1 else {
    print(usage)
    exit(64)
}
let root = arguments[1]
let numbers = arguments.dropFirst(2).compactMap { UInt64($0) }.map { Int(clamping: $0) }

do {
    switch (arguments[0], arguments.count, numbers.count) {
    case ("circle", 2, 0): try await Device.makeCircle(in: root)
    case ("write", 5, 3): try Workload(Device(numbers[0], in: root), seed: numbers[1]).run(until: numbers[2])
    case ("agent", 4, 2): try await Device(numbers[0], in: root).runAgent(secondsAhead: numbers[1])
    case ("settle", 4, 2): try await Device(numbers[0], in: root).settle(secondsAhead: numbers[1])
    case ("compare", 2, 0):
        let comparison = try Comparison(of: root)
        print(comparison.summary)
        for failures in [comparison.differences, comparison.losses, comparison.revivals] {
            for failure in failures.prefix(5) { print("  \(failure)") }
        }
        exit(comparison.failureCount == 0 ? 0 : 1)
    case ("delay", 4, 2): try await Measurement(in: root, itemCount: numbers[0]).measureDelay(changeCount: numbers[1])
    case ("cpu", 3, 1): try await Measurement(in: root, itemCount: numbers[0]).measureProcessorTime()
    case ("fleet", 3, 1): try await FleetMeasurement(in: root, machineCount: numbers[0]).run()
    case ("measure", 3, 1): try await Measurement(in: root, itemCount: numbers[0]).run()
    default:
        print(usage)
        exit(64)
    }
} catch {
    print("\(arguments.joined(separator: " ")) failed: \(error)")
    exit(2)
}
