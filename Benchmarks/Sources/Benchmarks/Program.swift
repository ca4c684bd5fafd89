// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The benchmark: measures in processes of its own, each with a keychain in a temporary folder, and prints one table.
@main
enum Program {
    static let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]

    static func main() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch (arguments.first, arguments.dropFirst().compactMap { Int($0) }) {
        case ("fill", let numbers) where numbers.count == 1:
            try ValetMeasurement(itemCount: numbers[0]).fill()
        case ("measure", let numbers) where numbers.count == 2 && arguments.count == 4:
            try send(ValetMeasurement(itemCount: numbers[0]).run(directory: arguments[3], sampleCount: numbers[1]))
        case ("lock", let numbers) where numbers.count == 1:
            try send(LockMeasurement(sampleCount: numbers[0]).run())
        case ("first-read", _):
            try FileHandle.standardOutput.write(contentsOf: Data("\(LockMeasurement.firstRead())\n".utf8))
        case ("threads", _):
            try ConcurrentWrites().run(secondsPerRound: 1)
        case ("libsecret", let numbers) where numbers.count == 1:
            try send(LibsecretMeasurement.run(itemCount: numbers[0]))
        default:
            guard let options = Options(arguments) else {
                print(Options.usage)
                exit(2)
            }
            try MeasuredRun(options: options).run()
        }
    }

    /// To the process that started this one.
    private static func send(_ report: Report) throws {
        try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(report))
    }
}
