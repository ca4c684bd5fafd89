// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainSystem
import Valet

/// What an import does with each secret of a source, and the import itself.
struct ImportPlan {
    private enum Step {
        case store
        /// The key has another value.
        case replace, keep
        /// The key has the same value already.
        case isStored
    }

    /// One for each secret of the content.
    private let steps: [Step]
    private let content: SourceContent

    /// Compares the secrets of the source with those of the valet.
    init(_ content: SourceContent, into selected: SelectedValet, overwriting: Bool, progress: ImportProgress) throws {
        var steps: [Step] = []
        for secret in content.secrets {
            progress.show("Comparing", steps.count)
            steps.append(try Self.step(for: secret, in: selected.valet, overwriting: overwriting))
        }
        self.steps = steps
        self.content = content
    }

    private static func step(for secret: FoundSecret, in valet: any ValetProtocol, overwriting: Bool) throws -> Step {
        do throws(KeychainError) {
            if try valet.object(forKey: secret.key, withPrompt: "") == secret.value { return .isStored }
            return overwriting ? .replace : .keep
        } catch .itemNotFound {
            return .store
        }
    }

    /// The keys that the valet does not have.
    var newKeys: some Collection<String> { keys { $0 == .store } }

    /// The keys with another value, which the import leaves alone.
    var keptKeys: some Collection<String> { keys { $0 == .keep } }

    private func keys(where isIncluded: @escaping (Step) -> Bool) -> some Collection<String> {
        steps.indices.lazy.filter { isIncluded(steps[$0]) }.map { content.secrets.key(at: $0) }
    }

    // MARK: Showing

    /// Lists the keys, where they come from, and what would happen; never a value.
    ///
    /// `refusedKeys` are those that an item of another accessibility has.
    func show(refusedKeys: [String]) throws(CommandFailure) {
        let refused = Set(refusedKeys.map { Array($0.utf8) })
        for (secret, step) in zip(content.secrets, steps) {
            let note =
                switch step {
                case .store: refused.contains(Array(secret.key.utf8)) ? CommandFailure.otherAccessibilityNote : ""
                case .replace: "\t(would be replaced)"
                case .keep: "\t(already exists with another value)"
                case .isStored: "\t(already stored)"
                }
            try StandardOutput.writeLine("\(ItemListing.escapingUnprintable(secret.key))\t\(secret.place)\(note)")
        }
        for omission in content.omissions { try StandardOutput.writeLine("not imported: \(omission.note)") }
        if steps.isEmpty { WarningLog.add("the source has no secrets") }
    }

    // MARK: Carrying out

    /// Stores the secrets in one transaction, in which each one is read back: all of them are stored, or none.
    ///
    /// Where keychaind keeps the keychain there is no transaction. What was stored is removed again if a later one fails, but not if the command is
    /// killed; the next import then completes it, and other programs see a part of it meanwhile.
    func execute(in selected: SelectedValet, progress: ImportProgress) throws {
        var failure: (any Error)?
        let outcome = withTransaction {
            do {
                try store(in: selected, progress) { _ in }
                return true
            } catch {
                failure = error
                return false
            }
        }
        switch outcome {
        case .committed: return
        case .rolledBack: throw failure ?? KeychainError.couldNotAccessKeychain
        case .failed: throw KeychainError.couldNotAccessKeychain
        case .unsupported: try storeUndoing(in: selected, progress)
        }
    }

    /// A value that was stored, with the one that it has replaced.
    private struct Change {
        let key: String
        let value: Data
        let previous: Data?

        /// Undoes the change, unless another program has changed the value since; returns false if that fails.
        func undo(in valet: any ValetProtocol) -> Bool {
            do throws(KeychainError) {
                guard try valet.object(forKey: key, withPrompt: "") == value else { return true }
                if let previous { try valet.setObject(previous, forKey: key) } else { try valet.removeObject(forKey: key) }
                return true
            } catch {
                return error == .itemNotFound
            }
        }
    }

    private func store(in selected: SelectedValet, _ progress: ImportProgress, noting note: (Change) -> Void) throws {
        for (number, step) in steps.enumerated() where step == .store || step == .replace {
            progress.show("Storing", number)
            let secret = content.secrets[number]
            // Noted before, because a write that fails may have taken effect.
            if step == .store {
                note(Change(key: secret.key, value: secret.value, previous: nil))
                try selected.add(secret.value, forKey: secret.key)
            } else {
                let previous = try selected.valet.object(forKey: secret.key, withPrompt: "")
                note(Change(key: secret.key, value: secret.value, previous: previous))
                try selected.valet.setObject(secret.value, forKey: secret.key)
            }
        }
        for (number, step) in steps.enumerated() where step == .store || step == .replace {
            progress.show("Checking", number)
            let secret = content.secrets[number]
            guard try selected.valet.object(forKey: secret.key, withPrompt: "") == secret.value else {
                throw KeychainError.couldNotAccessKeychain
            }
        }
    }

    private func storeUndoing(in selected: SelectedValet, _ progress: ImportProgress) throws {
        var changes: [Change] = []
        do {
            try store(in: selected, progress) { changes.append($0) }
        } catch {
            let left = changes.reversed().filter { !$0.undo(in: selected.valet) }
            guard left.isEmpty else {
                throw CommandFailure(
                    .unavailable, "the import failed, and \(Self.secrets(left.count)) that it had stored could not be removed again",
                    advice: "Run the command again when keychaind answers: it completes the import.")
            }
            throw error
        }
    }

    /// Says what was done, and how the source can be removed once everything in it is stored.
    func report() throws(CommandFailure) {
        let action = "the secrets were stored"
        let storedCount = steps.count { $0 == .store || $0 == .replace }
        var lines = ["\(Self.secrets(storedCount)) stored."]
        let sameCount = steps.count { $0 == .isStored }
        if sameCount > 0 { lines.append("\(Self.secrets(sameCount)) already stored with the same value.") }
        lines += omissionLines
        if keptKeys.isEmpty, !content.secrets.isEmpty {
            // A source is not removed by its name alone while it has something that is stored nowhere else.
            lines.append(content.isComplete ? content.removalAdvice : "Keep the source: it has more than was stored.")
        }
        try StandardOutput.write(lines, afterAction: action)
        guard keptKeys.isEmpty else {
            throw CommandFailure(
                .alreadyExists,
                "other values are stored under \(keptKeys.prefix(10).map(ItemListing.escapingUnprintable).joined(separator: ", "))"
                    + (keptKeys.count > 10 ? " and \(keptKeys.count - 10) other keys" : "") + "; they were left alone",
                advice: "Add --overwrite to replace them. Keep the source until then: it has values that are not stored.")
        }
    }

    /// The omissions, a limited number of them: first those that have something that is not stored.
    private var omissionLines: [String] {
        let limit = 20
        let ordered = content.omissions.filter { !$0.isEmpty } + content.omissions.filter(\.isEmpty)
        let lines = ordered.prefix(limit).map { "not imported: \($0.note)" }
        guard ordered.count > limit else { return lines }
        let emptyCount = ordered.dropFirst(limit).count { $0.isEmpty }
        return lines + ["not imported: \(ordered.count - limit) more, \(emptyCount) of them empty; --dry-run lists all."]
    }

    private static func secrets(_ count: Int) -> String { count == 1 ? "1 secret" : "\(count) secrets" }
}

/// How far a long import is: 100,000 secrets take many seconds.
final class ImportProgress {
    private let count: Int
    private let line = ProgressLine()

    /// Creates the progress of an import of `count` secrets.
    ///
    /// A short import shows none.
    init(count: Int) { self.count = count }

    /// Shows how many of the secrets a phase of the import is done with.
    func show(_ phase: String, _ number: Int) {
        guard count >= 5_000, number.isMultiple(of: 500) else { return }
        line.show("\(phase) secrets: \(number * 100 / count) %")
    }

    /// Removes the line.
    func end() { line.end() }
}
