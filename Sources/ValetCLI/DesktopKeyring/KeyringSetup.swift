// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainSystem

/// What `valet secret-service enable` has changed, so that `disable` can undo exactly that.
///
/// Each change is recorded before it is made: after a crash, `disable` finds either the former or the new content in its place.
struct KeyringSetup: Codable {
    struct Change: Codable {
        let path: String
        let former: FileContent
        let written: FileContent
    }

    /// The change of KWallet's settings: if other programs change them too, only this setting is put back.
    struct WalletChange: Codable {
        let change: Change
        let formerSetting: String?
    }

    /// The state of one change now.
    enum ChangeState: String, Codable {
        case inPlace = "in place"
        case undone
        case changedSince = "changed since"
    }

    private static let presentVersion = 1
    private static let disabled = "false"

    private let version: Int
    /// The program that is the keyring.
    let program: String
    private(set) var directories: [String] = []
    private(set) var changes: [Change] = []
    private(set) var wallet: WalletChange?
    /// The changes of all files.
    var allChanges: [Change] { changes + (wallet.map { [$0.change] } ?? []) }

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
        (setup.directories, setup.changes, setup.wallet) = (directories, changes, wallet)
        return setup
    }

    private func save(_ places: KeyringPlaces) throws(CommandFailure) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else {
            throw CommandFailure(KeychainFailure(.internal, "the record of the changes cannot be encoded"))
        }
        do throws(KeychainFailure) {
            try PrivateDirectory.make(FileSystem.parent(of: places.record))
        } catch {
            throw CommandFailure(error)
        }
        try FileContent.file(data).write(to: places.record)
    }

    // MARK: Changes

    /// Makes all changes for the program; those of an earlier setup stay recorded with what was there before them.
    mutating func apply(_ places: KeyringPlaces, disablesWallet: Bool) throws(CommandFailure) {
        if disablesWallet { try disableWallet(places) }
        for file in try places.files(for: KeyringProgram(path: program)) { try put(file.content, at: file.path, places) }
    }

    private mutating func put(_ content: FileContent, at path: String, _ places: KeyringPlaces) throws(CommandFailure) {
        let present = try FileContent(at: path)
        var former = present
        if let index = changes.firstIndex(where: { $0.path == path }) {
            let earlier = changes.remove(at: index)
            if present == earlier.written { former = earlier.former }
        }
        changes.append(Change(path: path, former: former, written: content))
        try save(places)
        try makeDirectory(FileSystem.parent(of: path), places)
        try content.write(to: path)
    }

    private mutating func disableWallet(_ places: KeyringPlaces) throws(CommandFailure) {
        guard var settings = try Self.walletSettings(places.wallet), settings.isEnabled != Self.disabled else { return }
        let formerSetting = settings.isEnabled
        settings.isEnabled = Self.disabled
        let change = Change(
            path: places.wallet, former: try FileContent(at: places.wallet), written: .file(Data(settings.text.utf8)))
        wallet = WalletChange(change: change, formerSetting: formerSetting)
        try save(places)
        try makeDirectory(FileSystem.parent(of: places.wallet), places)
        try change.written.write(to: places.wallet)
    }

    /// The settings; nil if there is a file that these rules do not fit.
    private static func walletSettings(_ path: String) throws(CommandFailure) -> WalletSettings? {
        switch try FileContent(at: path) {
        case .absent: WalletSettings("")
        case .file(let data): String(validating: data, as: UTF8.self).map { WalletSettings($0) }
        case .link: nil
        }
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
        guard let present = try? FileContent(at: change.path) else { return .changedSince }
        return present == change.written ? .inPlace : present == change.former ? .undone : .changedSince
    }

    /// Puts back what was there; returns the paths that were changed since, which stay as they are.
    func undo(_ places: KeyringPlaces) throws(CommandFailure) -> [String] {
        var leftAlone: [String] = []
        for change in changes.reversed() {
            switch state(of: change) {
            case .inPlace: try change.former.write(to: change.path)
            case .undone: break
            case .changedSince: leftAlone.append(change.path)
            }
        }
        if let wallet { try undo(wallet) }
        // A directory that has other files by now stays.
        for directory in directories.reversed() { try? FileSystem.removeDirectory(directory) }
        try FileContent.absent.write(to: places.record)
        return leftAlone
    }

    private func undo(_ wallet: WalletChange) throws(CommandFailure) {
        let path = wallet.change.path
        switch state(of: wallet.change) {
        case .inPlace: try wallet.change.former.write(to: path)
        case .undone: break
        case .changedSince:
            guard var settings = try Self.walletSettings(path), settings.isEnabled == Self.disabled else { return }
            settings.isEnabled = wallet.formerSetting
            try FileContent.file(Data(settings.text.utf8)).write(to: path)
        }
    }
}
