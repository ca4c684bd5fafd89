// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// One of the two devices of a contestant.
enum SyncDevice: String, CaseIterable {
    case one
    case other
}

/// A program that keeps the secrets of two devices equal through a place that both reach.
///
/// Everything is performed by the commands that a person or a timer runs.
protocol SyncPeer: AnyObject {
    var contestant: Contestant { get }
    /// The folder with the secrets of both devices and the shared place, which can be copied and put back.
    var state: String { get }
    /// The shared place, within `state`.
    var shared: String { get }
    /// Whether a change arrives without a command.
    var hasAgents: Bool { get }

    func set(_ key: Int, to value: String, on device: SyncDevice) throws
    func remove(_ key: Int, on device: SyncDevice) throws

    /// Returns the value that a person sees; nil if there is no such entry.
    func value(_ key: Int, on device: SyncDevice) throws -> String?

    /// Returns the values of an entry that the program itself still has, besides the one that a person sees.
    func otherValues(_ key: Int, on device: SyncDevice) throws -> [KeptValue]

    /// Puts the changes of `device` into the shared place.
    ///
    /// Returns whether the program warned of a loss.
    @discardableResult func send(from device: SyncDevice) throws -> Bool

    /// Reads the changes that are in the shared place.
    ///
    /// Returns whether the program warned of a loss.
    @discardableResult func receive(on device: SyncDevice) throws -> Bool

    /// Performs both, as an unattended device does.
    ///
    /// Returns whether the program warned of a loss.
    @discardableResult func synchronize(_ device: SyncDevice) throws -> Bool

    /// Returns whether a conflict prevents the device from synchronizing, although no command has failed.
    func isWaitingForPerson(_ device: SyncDevice) throws -> Bool

    /// Returns the size of what `send` is about to transfer; nil if it is that of the files that change in the shared place.
    func byteCountToSend(from device: SyncDevice) throws -> Int?

    /// Performs the program's own cleaning of the shared place.
    ///
    /// Returns false if there is none for a person to start.
    func clean() throws -> Bool

    /// Changes entries on the first device and sends the changes, without the other device.
    func makeMissedChanges(_ count: Int) throws

    func startAgents() throws
    func endAgents()

    /// Ends all processes of the contestant.
    func end()
}

/// A value besides the visible one.
enum KeptValue: Equatable {
    /// As another version of the entry.
    case version(String)
    /// In an entry that was moved to the recycle bin.
    case recycled(String)

    var text: String {
        switch self {
        case .version(let text), .recycled(let text): text
        }
    }
}

extension SyncPeer {
    var hasAgents: Bool { false }

    func isWaitingForPerson(_ device: SyncDevice) throws -> Bool { false }
    func byteCountToSend(from device: SyncDevice) throws -> Int? { nil }
    func clean() throws -> Bool { false }
    func startAgents() throws {}
    func endAgents() {}
    func end() {}
}

/// The secrets of all contestants.
enum SyncSecret {
    /// Returns a value of the usual size that contains `tag`.
    static func value(_ tag: String) -> String {
        tag + String(repeating: ".", count: max(0, FilledValet.value.count - tag.count))
    }
}
