// SPDX-License-Identifier: Apache-2.0

/// A file's content: what is on the disk for certain, and what a power cut may take or leave.
struct DiskFile {
    enum Change {
        case write(offset: Int, bytes: [UInt8])
        case truncation(byteCount: Int)
    }

    private struct Step {
        let change: Change
        var state: State
    }

    private enum State {
        case pending
        /// A flush of it failed: no later one brings it to the disk.
        case lost
        case durable
    }

    /// What no power cut takes, as far as nothing uncertain lies before it.
    private var durable = FileContent()
    private var steps: [Step] = []

    var hasUncertainSteps: Bool { steps.contains { $0.state != .durable } }

    mutating func change(_ change: Change) { steps.append(Step(change: change, state: .pending)) }

    mutating func flush() {
        for index in steps.indices where steps[index].state == .pending { steps[index].state = .durable }
        // Once folded into the content it costs nothing any more.
        let certain = steps.prefix { $0.state == .durable }
        for step in certain { durable.apply(step.change) }
        steps.removeFirst(certain.count)
    }

    mutating func failFlush() {
        for index in steps.indices where steps[index].state == .pending { steps[index].state = .lost }
    }

    /// The content after a power cut, of the uncertain changes having what `survival` leaves.
    ///
    /// The changes that are left have their order: a disk may write the newer of two sooner, and then keeps the newer. Which of
    /// two was written first shows only in which of them is missing.
    func content(_ survival: inout Survival) -> FileContent {
        var content = durable
        var decision = survival.decision(stepCount: steps.count { $0.state != .durable })
        for step in steps {
            guard step.state != .durable else {
                content.apply(step.change)
                continue
            }
            for change in decision.whatIsLeft(of: step.change) { content.apply(change) }
        }
        return content
    }

    /// As the program sees it.
    var seen: FileContent {
        var survival = Survival.everything
        return content(&survival)
    }
}
