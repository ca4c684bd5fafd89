// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// What synchronization costs one contestant.
struct SyncMeasurement {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let peer: any SyncPeer
    private let itemCount: Int
    private let snapshots: String

    init(_ peer: any SyncPeer, itemCount: Int, snapshots: String) {
        (self.peer, self.itemCount, self.snapshots) = (peer, itemCount, snapshots)
    }

    /// Changes one password at a time, sends it, and reads it on the other device.
    func bytes(changeCount: Int) throws -> [SyncFigure] {
        let warmUpCount = 2
        try exchange(change: 0, "warm-up-0")
        try exchange(change: 1, "warm-up-1")
        let isCleaned = try peer.clean()
        let cleaned = try SharedFiles(peer.shared)
        var (moved, stored): ([Double], [Double]) = ([], [])
        for index in 0..<changeCount {
            let before = try SharedFiles(peer.shared)
            let announced = try exchange(change: warmUpCount + index, "bytes-\(index)")
            let after = try SharedFiles(peer.shared)
            moved.append(Double(announced ?? after.byteCount(changedSince: before)))
            stored.append(Double(after.byteCount - before.byteCount))
        }
        var figures = [
            SyncFigure(peer.contestant, .bytesMoved, itemCount: itemCount, samples: moved),
            SyncFigure(peer.contestant, .bytesStored, itemCount: itemCount, samples: stored),
        ]
        if isCleaned, try peer.clean() {
            let growth = try Double(SharedFiles(peer.shared).byteCount - cleaned.byteCount) / Double(changeCount)
            figures.append(SyncFigure(peer.contestant, .bytesStoredAfterCleaning, itemCount: itemCount, samples: [growth]))
        }
        return figures.compactMap(\.self)
    }

    /// Returns the announced size of what was sent.
    @discardableResult
    private func exchange(change: Int, _ tag: String) throws -> Int? {
        try peer.set(spread(change), to: SyncSecret.value(tag), on: .one)
        let announced = try peer.byteCountToSend(from: .one)
        try peer.send(from: .one)
        try peer.receive(on: .other)
        try demand(spread(change), SyncSecret.value(tag), on: .other)
        return announced
    }

    /// Writes on one device, and reads on the other one until it has the value.
    func writeToReadable(sampleCount: Int) throws -> [SyncFigure] {
        try peer.startAgents()
        defer { peer.endAgents() }
        var samples: [Double] = []
        for index in -3..<sampleCount {
            let (key, value) = (spread(index + 3), SyncSecret.value("latency-\(index)"))
            let start = Samples.now()
            try peer.set(key, to: value, on: .one)
            if !peer.hasAgents {
                try peer.send(from: .one)
                try peer.receive(on: .other)
            }
            while try peer.value(key, on: .other) != value {
                guard peer.hasAgents, Samples.now() - start < 60_000_000_000 else { throw Failure(description: "a change did not arrive") }
            }
            if index >= 0 { samples.append(microseconds(since: start)) }
        }
        return [SyncFigure(peer.contestant, .writeToReadable, itemCount: itemCount, samples: samples)].compactMap(\.self)
    }

    /// Changes different entries on both devices, and makes the devices equal.
    func merging(changeCount: Int, sampleCount: Int) throws -> [SyncFigure] {
        var samples: [Double] = []
        for round in 0..<sampleCount {
            let tag = SyncSecret.value("merge-\(round)")
            for key in 0..<changeCount {
                try peer.set(key, to: tag, on: .one)
                try peer.set(changeCount + key, to: tag, on: .other)
            }
            let start = Samples.now()
            for device in [SyncDevice.one, .other, .one] { try peer.synchronize(device) }
            samples.append(microseconds(since: start))
            for key in [0, changeCount - 1, changeCount, 2 * changeCount - 1] {
                for device in SyncDevice.allCases { try demand(key, tag, on: device) }
            }
        }
        let figure = SyncFigure(peer.contestant, .merging, itemCount: itemCount, changeCount: 2 * changeCount, samples: samples)
        return [figure].compactMap(\.self)
    }

    /// Lets the other device read what it missed, several times from the same state.
    func catchingUp(changeCount: Int, sampleCount: Int) throws -> [SyncFigure] {
        for device in [SyncDevice.one, .other, .one] { try peer.synchronize(device) }
        try peer.makeMissedChanges(changeCount)
        let snapshot = try takeSnapshot()
        var samples: [Double] = []
        for _ in 0..<sampleCount {
            try snapshot.restore()
            let start = Samples.now()
            try peer.receive(on: .other)
            samples.append(microseconds(since: start))
            let last = changeCount - 1
            try demand(last % itemCount, SyncSecret.value("missed-\(last)"), on: .other)
        }
        return [SyncFigure(peer.contestant, .catchingUp, itemCount: itemCount, changeCount: changeCount, samples: samples)].compactMap(
            \.self)
    }

    func takeSnapshot() throws -> SyncSnapshot { try SyncSnapshot(of: peer.state, at: snapshots) }

    /// Consecutive numbers give keys far from each other.
    private func spread(_ index: Int) -> Int { (index * 7_919) % itemCount }

    private func demand(_ key: Int, _ value: String, on device: SyncDevice) throws {
        let found = try peer.value(key, on: device)
        guard found == value else { throw Failure(description: "entry \(key) has \(found ?? "no value") and not \(value)") }
    }

    private func microseconds(since start: UInt64) -> Double { Double(Samples.now() - start) / 1_000 }
}

/// A copy of everything that the devices and the shared place have.
struct SyncSnapshot {
    private let state: String
    private let copy: String

    init(of state: String, at copy: String) throws {
        (self.state, self.copy) = (state, copy)
        try? FileManager.default.removeItem(atPath: copy)
        try Self.copy(state, to: copy)
    }

    func restore() throws {
        try FileManager.default.removeItem(atPath: state)
        try Self.copy(copy, to: state)
    }

    /// With the times of the files, which git compares.
    private static func copy(_ folder: String, to target: String) throws {
        let environment = ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"]
        try Command("cp", ["-a", folder, target], environment: environment).run(timeoutSeconds: 600)
        // Otherwise the system would write the copy to disk during a measurement.
        sync()
    }
}

/// The files in the shared place at one moment.
private struct SharedFiles {
    private struct File: Equatable {
        let byteCount: Int
        let number: Int
        let date: Date?
    }

    private let files: [String: File]

    init(_ folder: String) throws {
        var files: [String: File] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder) {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder + "/" + name)
            guard attributes[.type] as? FileAttributeType == .typeRegular else { continue }
            files[name] = File(
                byteCount: (attributes[.size] as? NSNumber)?.intValue ?? 0,
                number: (attributes[.systemFileNumber] as? NSNumber)?.intValue ?? 0,
                date: attributes[.modificationDate] as? Date)
        }
        self.files = files
    }

    var byteCount: Int { files.values.map(\.byteCount).reduce(0, +) }

    func byteCount(changedSince earlier: SharedFiles) -> Int {
        files.filter { $0.value != earlier.files[$0.key] }.map(\.value.byteCount).reduce(0, +)
    }
}
