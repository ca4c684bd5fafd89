// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore
internal import KeychainSystem

/// What a person is asked.
struct ConsentRequest: Sendable {
    let caller: Caller
    let owner: ItemOwner
    /// The label of one of the items.
    let label: String

    /// The program, or all those that cannot be told apart.
    fileprivate var program: ItemOwner { caller.identity ?? .everyProgram }

    /// Whether the same dialog serves both calls.
    func isSame(as other: ConsentRequest) -> Bool { caller.connection == other.caller.connection && owner == other.owner }

    /// Whether an answer may decide both.
    fileprivate func isOfSameProgram(as other: ConsentRequest) -> Bool { program == other.program && owner == other.owner }

    /// Less than the 25 seconds for which libdbus, GDBus, and sd-bus wait for a reply.
    static let timeoutSeconds: UInt32 = 20
    /// The largest number of waiting calls, of a program and in all: a program waits for one at a time.
    static let limitForProgram = 32
    static let limit = 256
    /// No dialog is shown for a call that ends sooner: it would be gone before a person has read it.
    static let shortestDialogSeconds: UInt32 = 5

    /// When a call that comes now has waited long enough; in nanoseconds of the monotonic clock.
    static var endNanoseconds: UInt64 { MonotonicClock.nowNanoseconds() + UInt64(timeoutSeconds) * 1_000_000_000 }
}

/// The calls whose replies wait until a person has allowed or refused them.
///
/// One dialog is shown at a time. It ends with the calls that it is for. Programs take turns, so that one which asks for the items of many
/// others keeps no other one waiting.
final class Consents<Message> {
    /// A call that waits.
    struct HeldCall {
        let message: Message
        let question: ConsentRequest
        let endNanoseconds: UInt64
    }

    /// A dialog that is shown.
    private final class Dialog: Sendable {
        let question: ConsentRequest
        let number: Int
        private let interruption: WakeupDescriptor

        init(_ question: ConsentRequest, _ number: Int) throws(Errno) {
            self.question = question
            self.number = number
            interruption = try WakeupDescriptor()
        }

        var descriptor: FileDescriptor { interruption.descriptor }

        func cancel() { interruption.set() }
    }

    private let prompter: @Sendable (FileDescriptor) -> any ConsentPrompter
    private let inbox: Inbox
    private var calls: [HeldCall] = []
    private var dialog: Dialog? {
        didSet { if dialog == nil { pauseEndNanoseconds = nowNanoseconds() + Self.pauseNanoseconds } }
    }
    private var lastNumber = 0
    /// The numbers of the last dialogs of programs.
    private var lastNumbers: [ItemOwner: Int] = [:]
    private let nowNanoseconds: () -> UInt64
    private var pauseEndNanoseconds: UInt64 = 0

    /// How long no dialog is shown after another one: a second click that was meant for that one must not answer the next.
    static var pauseNanoseconds: UInt64 { 1_000_000_000 }

    init(
        _ inbox: Inbox, nowNanoseconds: @escaping () -> UInt64 = MonotonicClock.nowNanoseconds,
        prompter: @escaping @Sendable (FileDescriptor) -> any ConsentPrompter
    ) {
        self.inbox = inbox
        self.nowNanoseconds = nowNanoseconds
        self.prompter = prompter
    }

    /// Keeps a call until the person has decided, at most until `endNanoseconds`.
    ///
    /// Throws `.isForeign` if no person can be asked.
    func hold(_ message: Message, _ question: ConsentRequest, endNanoseconds: UInt64) throws(BusError) {
        let ownCount = calls.count { $0.question.program == question.program }
        guard ownCount < ConsentRequest.limitForProgram, calls.count < ConsentRequest.limit else {
            throw .limitsExceeded("too many calls wait for a person")
        }
        calls.append(HeldCall(message: message, question: question, endNanoseconds: endNanoseconds))
        guard dialog == nil, !(isPausing ? canAsk(question) : startDialog()) else { return }
        calls.removeLast()
        throw .isForeign
    }

    private func canAsk(_ question: ConsentRequest) -> Bool {
        guard let dialog = try? Dialog(question, lastNumber) else { return false }
        return prompter(dialog.descriptor).canAsk
    }

    private var isPausing: Bool { nowNanoseconds() < pauseEndNanoseconds }

    /// When `takeExpired` and `askNext` have something to do; nil if no call waits.
    var nextEventNanoseconds: UInt64? {
        guard let end = calls.map(\.endNanoseconds).min() else { return nil }
        return dialog == nil && nextQuestion != nil ? min(end, pauseEndNanoseconds) : end
    }

    /// Returns the calls that have waited long enough, which do not wait any more.
    func takeExpired() -> [HeldCall] {
        let now = nowNanoseconds()
        return take { $0.endNanoseconds <= now }
    }

    /// Returns the calls of the program about the owner that a dialog was about; nil for a dialog that was ended because no call needed it.
    func takeAnswered(_ number: Int) -> (question: ConsentRequest, calls: [HeldCall])? {
        guard let ended = dialog, ended.number == number else { return nil }
        dialog = nil
        return (ended.question, take { $0.question.isOfSameProgram(as: ended.question) })
    }

    func removeAll(of connection: String) { _ = take { $0.question.caller.connection == connection } }

    /// Asks about a call that waits, if no dialog is shown, or was a moment ago.
    ///
    /// Returns the calls for which none can be shown.
    func askNext() -> [HeldCall] {
        guard dialog == nil, nextQuestion != nil, !isPausing, !startDialog() else { return [] }
        return take { _ in true }
    }

    private func take(where isTaken: (HeldCall) -> Bool) -> [HeldCall] {
        let taken = calls.filter(isTaken)
        calls.removeAll(where: isTaken)
        if let dialog, !calls.contains(where: { $0.question.isSame(as: dialog.question) }) {
            dialog.cancel()
            self.dialog = nil
        }
        return taken
    }

    /// The first call of the program whose last dialog is the oldest one.
    private var nextQuestion: ConsentRequest? {
        let shortest = nowNanoseconds() + UInt64(ConsentRequest.shortestDialogSeconds) * 1_000_000_000
        return calls.filter { $0.endNanoseconds >= shortest }.min {
            (lastNumbers[$0.question.program] ?? 0) < (lastNumbers[$1.question.program] ?? 0)
        }?.question
    }

    /// How long a call needs an answer to a question.
    private func remainingSeconds(of question: ConsentRequest) -> UInt32 {
        let end = calls.filter { $0.question.isSame(as: question) }.map(\.endNanoseconds).max() ?? 0
        let now = nowNanoseconds()
        return UInt32(clamping: (end > now ? end - now : 0) / 1_000_000_000)
    }

    private func startDialog() -> Bool {
        guard let question = nextQuestion, let dialog = try? Dialog(question, lastNumber + 1) else { return false }
        let prompter = prompter(dialog.descriptor)
        guard prompter.canAsk else { return false }
        lastNumber = dialog.number
        lastNumbers[question.program] = dialog.number
        let inbox = inbox
        let item = question.label.isEmpty ? "" : ", such as \"\(question.label)\""
        let text = ConsentQuestion(
            requester: question.caller.description, purpose: "read, change, and delete the items of \(question.owner.description)\(item)",
            timeoutSeconds: min(remainingSeconds(of: question), ConsentRequest.timeoutSeconds))
        let isStarted = BackgroundThread.start {
            let isAllowed: Bool?
            do throws(PresenceRefusal) {
                try prompter.requestConsent(text)
                isAllowed = true
            } catch {
                // Of a person who did not answer nothing is known.
                isAllowed = error == .canceled ? false : nil
            }
            // The descriptor is open until here.
            inbox.post(.answered(dialog: dialog.number, isAllowed: isAllowed))
        }
        if isStarted { self.dialog = dialog }
        return isStarted
    }
}
#endif
