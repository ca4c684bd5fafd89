// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine
internal import KeychainSystem

/// The prompts that unlock the keychain.
///
/// All that are shown at one time share one dialog, because all of them unlock the same keychain.
final class Prompts {
    struct Prompt {
        let owner: String
        /// The objects that the caller wants to unlock.
        let paths: [String]
        var isShown = false
    }

    /// A prompt that has ended, for its caller.
    struct Completion {
        let path: ObjectPath
        let owner: String
        let isDismissed: Bool
        /// The objects that are unlocked; empty if the prompt was dismissed.
        let paths: [String]
    }

    /// The largest number of prompts of a connection: a program needs one at a time.
    static let limitForConnection = 256

    private let unlocker: Unlocker
    private var prompts: [UInt64: Prompt] = [:]
    private var lastNumber: UInt64 = 0
    private var dialog: Unlocker.Dialog?
    /// Whether the dialog ends because no prompt needed it.
    private var isDialogCanceled = false

    init(_ unlocker: Unlocker) {
        self.unlocker = unlocker
    }

    func contains(_ number: UInt64) -> Bool { prompts[number] != nil }

    func make(owner: String, paths: [String]) throws(BusError) -> ObjectPath {
        guard prompts.values.count(where: { $0.owner == owner }) < Self.limitForConnection else {
            throw .limitsExceeded("this program has too many prompts")
        }
        lastNumber += 1
        prompts[lastNumber] = Prompt(owner: owner, paths: paths)
        return .prompt(lastNumber)
    }

    private func require(_ number: UInt64, of caller: String) throws(BusError) {
        guard let prompt = prompts[number] else { throw .noObject(at: ObjectPath.prompt(number).text) }
        guard prompt.owner == caller else { throw .invalidCaller }
    }

    /// Shows a prompt, which ends with `Inbox.Event.asked`.
    func show(_ number: UInt64, to caller: String) throws(BusError) {
        try require(number, of: caller)
        show(number)
    }

    private func show(_ number: UInt64) {
        prompts[number]?.isShown = true
        if dialog == nil { dialog = unlocker.start() }
    }

    /// Makes a prompt that is shown at once.
    func ask(for owner: String) throws(BusError) -> ObjectPath {
        let path = try make(owner: owner, paths: [])
        show(lastNumber)
        return path
    }

    /// Ends a prompt that `ask` has made.
    func cancel(_ path: ObjectPath) {
        if case .prompt(let number) = path { _ = end(number, isUnlocked: false) }
    }

    func dismiss(_ number: UInt64, by caller: String) throws(BusError) -> Completion {
        try require(number, of: caller)
        return end(number, isUnlocked: false)
    }

    private func end(_ number: UInt64, isUnlocked: Bool) -> Completion {
        let prompt = prompts.removeValue(forKey: number)
        endUnusedDialog()
        return Completion(
            path: .prompt(number), owner: prompt?.owner ?? "", isDismissed: !isUnlocked, paths: isUnlocked ? prompt?.paths ?? [] : [])
    }

    /// Ends the prompts that are shown, after the dialog has ended.
    func endAfterDialog(isUnlocked: Bool) -> [Completion] {
        dialog = nil
        defer { isDialogCanceled = false }
        guard isUnlocked || !isDialogCanceled else {
            // A prompt that was shown after the cancellation.
            if prompts.values.contains(where: \.isShown) { dialog = unlocker.start() }
            return []
        }
        return endShown(isUnlocked: isUnlocked)
    }

    /// Ends the prompts that are shown.
    func endShown(isUnlocked: Bool) -> [Completion] {
        prompts.filter(\.value.isShown).keys.sorted().map { end($0, isUnlocked: isUnlocked) }
    }

    func removeAll(of owner: String) {
        prompts = prompts.filter { $0.value.owner != owner }
        endUnusedDialog()
    }

    private func endUnusedDialog() {
        guard let dialog, !prompts.values.contains(where: \.isShown) else { return }
        isDialogCanceled = true
        dialog.cancel()
    }
}

/// Asks a person for the passcode and unlocks the keychain, on a thread of its own: the bus is served meanwhile.
struct Unlocker: Sendable {
    static let attemptCount = 3

    let session: any KeychainSessionProviding
    let inbox: Inbox
    /// Makes the program that asks, which stops when the descriptor can be read.
    let prompter: @Sendable (FileDescriptor) -> any PresencePrompter

    /// A dialog that is shown.
    final class Dialog: Sendable {
        private let interruption: WakeupDescriptor

        fileprivate init() throws(Errno) { interruption = try WakeupDescriptor() }

        fileprivate var descriptor: FileDescriptor { interruption.descriptor }

        func cancel() { interruption.set() }
    }

    /// Returns nil if there is no thread for it; then the event is there already.
    func start() -> Dialog? {
        guard let dialog = try? Dialog(), BackgroundThread.start({ inbox.post(.asked(isUnlocked: ask(dialog))) }) else {
            inbox.post(.asked(isUnlocked: false))
            return nil
        }
        return dialog
    }

    private func ask(_ dialog: Dialog) -> Bool {
        let prompter = prompter(dialog.descriptor)
        for attempt in 0..<Self.attemptCount {
            let question = PresenceQuestion(
                secret: .passcode, requester: CurrentProcess.executablePath ?? "",
                purpose: "unlock the keychain for a program of the desktop",
                triesLeft: attempt == 0 ? nil : Self.attemptCount - attempt)
            do {
                guard case .secret(let typed) = try prompter.ask(question) else { continue }
                // The bytes are copied within the closure.
                let passcode = try unsafe typed.withBytes { (bytes) throws(KeychainFailure) in try unsafe Passcode(typed: bytes) }
                try session.unlock(passcode, autoLock: .standard)
                return true
            } catch let failure as KeychainFailure where failure.refusal == .wrongPasscode || failure.status == .parameter {
                continue
            } catch {
                return false
            }
        }
        return false
    }
}
#endif
