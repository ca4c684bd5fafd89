// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainSystem

/// What `valet secret-service enable` has changed, so that `disable` can undo exactly that.
///
/// Each change is recorded before it is made: after a crash, `disable` finds either the former content in its place, or one that `enable` has written.
struct KeyringSetup: Codable {
    struct Change: Codable {
        let path: String
        let former: FileContent
        /// The permissions of the former file; nil if there was none.
        let formerPermissions: UInt32?
        /// What `enable` has written, each time that it was used: the last one may not have reached the file.
        let written: [FileContent]
    }

    /// The change of a setting of another program: if the file is changed since, only this setting is put back.
    struct SettingChange: Codable {
        let change: Change
        let group: String
        let key: String
        let value: String
        let formerValue: String?
    }

    /// The state of one change now.
    enum ChangeState: String, Codable {
        case inPlace = "in place"
        case undone
        case changedSince = "changed since"
        case unreadable = "cannot be read"
    }

    private static let presentVersion = 2

    private let version: Int
    /// The program that is the keyring.
    let program: String
    private(set) var directories: [String] = []
    private(set) var changes: [Change] = []
    private(set) var settings: [SettingChange] = []
    /// The changes of all files.
    var allChanges: [Change] { changes + settings.map(\.change) }

    init(program: String) {
        version = Self.presentVersion
        self.program = program
    }

    // MARK: The record

    /// Reads the record; nil if nothing was set up.
    static func load(_ places: KeyringPlaces) throws(CommandFailure) -> KeyringSetup? {
        guard case .file(let data) = try FileContent(at: places.record) else { return nil }
        guard let setup = try? JSONDecoder().decode(KeyringSetup.self, from: data), setup.version == presentVersion else {
            throw CommandFailure(
                .damaged, "the record \(places.record) cannot be read, or a newer version has written it",
                advice: "Nothing was changed. Use the version of valet that has set the keyring up.")
        }
        return setup
    }

    /// Continues an earlier setup, for another program perhaps.
    func with(program: String) -> KeyringSetup {
        var setup = KeyringSetup(program: program)
        (setup.directories, setup.changes, setup.settings) = (directories, changes, settings)
        return setup
    }

    private func save(_ places: KeyringPlaces) throws(CommandFailure) { try save(to: places.record) }

    private func save(to path: String) throws(CommandFailure) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else {
            throw CommandFailure(KeychainFailure(.internal, "the record of the changes cannot be encoded"))
        }
        do throws(KeychainFailure) {
            try PrivateDirectory.make(FileSystem.parent(of: path))
        } catch {
            throw CommandFailure(error)
        }
        try FileContent.file(data).write(to: path)
    }

    // MARK: Changes

    /// Makes all changes for the program, and returns whether a file has another content now.
    ///
    /// Those of an earlier setup stay recorded with what was there before them.
    mutating func apply(_ places: KeyringPlaces, _ settings: [Setting]) throws(CommandFailure) -> Bool {
        for setting in settings { try change(setting, places) }
        var isChanged = false
        for file in try places.files(for: KeyringProgram(path: program)) where try put(file.content, at: file.path, places) {
            isChanged = true
        }
        return isChanged
    }

    /// Returns whether the file had another content.
    private mutating func put(_ content: FileContent, at path: String, _ places: KeyringPlaces) throws(CommandFailure) -> Bool {
        let present = try FileContent(at: path)
        // A file of an earlier setup whose record was lost.
        var former = present.isWrittenBySetup ? .absent : present
        var permissions = former == .absent ? nil : FileContent.permissions(of: path)
        var written = [content]
        if let index = changes.firstIndex(where: { $0.path == path }) {
            let earlier = changes.remove(at: index)
            if earlier.written.contains(present) {
                (former, permissions) = (earlier.former, earlier.formerPermissions)
                written = earlier.written.filter { $0 != content } + written
            }
        }
        changes.append(Change(path: path, former: former, formerPermissions: permissions, written: written))
        try save(places)
        guard present != content else { return false }
        try makeDirectory(FileSystem.parent(of: path), places)
        try content.write(to: path)
        return true
    }

    private mutating func change(_ setting: Setting, _ places: KeyringPlaces) throws(CommandFailure) {
        let path = setting.path
        let present = try FileContent(at: path)
        let isRecorded = settings.contains { $0.change.path == path && $0.key == setting.key }
        // As in `put`.
        let former = present.isWrittenBySetup && !isRecorded ? .absent : present
        guard var file = former.text(orElse: setting.initialText).map({ setting.file($0) }) else { return }
        let formerValue = file.value
        guard let value = setting.value(formerValue), value != formerValue else { return }
        file.value = value
        let content = FileContent.file(Data(file.text.utf8))
        settings.removeAll { $0.change.path == path && $0.key == setting.key }
        settings.append(
            SettingChange(
                change: Change(path: path, former: former, formerPermissions: nil, written: [content]), group: setting.group,
                key: setting.key, value: value, formerValue: formerValue))
        try save(places)
        try makeDirectory(FileSystem.parent(of: path), places)
        try content.write(to: path)
    }

    private mutating func makeDirectory(_ path: String, _ places: KeyringPlaces) throws(CommandFailure) {
        var made: [String] = []
        do throws(KeychainFailure) { try PrivateDirectory.make(path) { made.append($0) } } catch { throw CommandFailure(error) }
        guard !made.isEmpty else { return }
        directories += made
        try save(places)
    }

    // MARK: Undoing

    func state(of change: Change) -> ChangeState {
        guard let present = try? FileContent(at: change.path) else { return .unreadable }
        return Self.state(of: change, present)
    }

    private static func state(of change: Change, _ present: FileContent) -> ChangeState {
        change.written.contains(present) ? .inPlace : present == change.former ? .undone : .changedSince
    }

    /// Puts back what was there; returns the changes whose files have another content since, and stay as they are.
    ///
    /// Nothing is put back if one of the files cannot be read.
    func undo() throws(CommandFailure) -> [Change] {
        var leftAlone: [Change] = []
        var inPlace: [Change] = []
        for change in changes.reversed() {
            switch Self.state(of: change, try FileContent(at: change.path)) {
            case .inPlace: inPlace.append(change)
            case .changedSince: leftAlone.append(change)
            case .undone, .unreadable: break
            }
        }
        for change in inPlace { try change.former.write(to: change.path, permissions: change.formerPermissions) }
        for setting in settings.reversed() { try Self.undo(setting) }
        // A directory that has other files by now stays.
        for directory in directories.reversed() { try? FileSystem.removeDirectory(directory) }
        return leftAlone
    }

    /// Removes the record, and keeps what was in the place of files that were left alone in a file beside it: nothing else has it.
    ///
    /// Returns the path of that file; nil if there is nothing to keep.
    func forget(_ places: KeyringPlaces, keeping leftAlone: [Change]) throws(CommandFailure) -> String? {
        var kept = KeyringSetup(program: program)
        kept.changes = leftAlone.filter { $0.former != .absent }
        var path: String?
        if !kept.changes.isEmpty {
            // One of an earlier time stays.
            let free = places.unusedPathForKeptContents
            try kept.save(to: free)
            path = free
        }
        try FileContent.absent.write(to: places.record)
        return path
    }

    private static func undo(_ setting: SettingChange) throws(CommandFailure) {
        let path = setting.change.path
        let present = try FileContent(at: path)
        switch state(of: setting.change, present) {
        case .inPlace: try setting.change.former.write(to: path)
        case .undone, .unreadable: break
        case .changedSince:
            guard let text = present.text(orElse: "") else { return }
            var file = SettingsFile(text, group: setting.group, key: setting.key)
            guard file.value == setting.value else { return }
            file.value = setting.formerValue
            try FileContent.file(Data(file.text.utf8)).write(to: path)
        }
    }

    // MARK: Another attempt

    /// The files as they are before another `enable`, which a failure of that puts back.
    struct Snapshot {
        fileprivate let setup: KeyringSetup
        fileprivate let files: [(path: String, content: FileContent)]
    }

    /// Returns what a failed attempt for the program has to put back.
    func snapshot(_ places: KeyringPlaces, for program: KeyringProgram) throws(CommandFailure) -> Snapshot {
        var files: [(path: String, content: FileContent)] = []
        let settings = settings.map(\.change.path) + places.settings(disablesWallet: true).map(\.path)
        for path in try places.files(for: program).map(\.path) + settings { files.append((path, try FileContent(at: path))) }
        return Snapshot(setup: self, files: files)
    }

    static func restore(_ snapshot: Snapshot, _ places: KeyringPlaces) throws(CommandFailure) {
        for file in snapshot.files where try FileContent(at: file.path) != file.content { try file.content.write(to: file.path) }
        try snapshot.setup.save(places)
    }
}
